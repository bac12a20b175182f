//! `grove config show`

use super::{Failure, print_line};
use crate::cli::{Common, OutputArgs, ServeArgs};
use crate::settings::Settings;

pub(crate) fn show(common: &Common, args: &OutputArgs) -> Result<(), Failure> {
    let settings = Settings::load(common, &ServeArgs::default())?;
    let json = serde_json::to_value(&settings)?;
    if args.json {
        print_line(serde_json::to_string_pretty(&json)?)?;
        return Ok(());
    }
    let exists = if settings.config_file.exists() { "" } else { " (does not exist)" };
    print_line(format!("configuration file: {}{exists}\n", settings.config_file.display()))?;
    for (name, setting) in json.as_object().into_iter().flatten() {
        let value = match setting.get("value") {
            Some(serde_json::Value::String(text)) => text.clone(),
            Some(value) => value.to_string(),
            None => String::new(),
        };
        let source = setting.get("source").cloned().unwrap_or_default();
        let source = match (source.get("kind").and_then(|kind| kind.as_str()), source.get("name")) {
            (Some(kind), Some(name)) => format!("{kind} {}", name.as_str().unwrap_or_default()),
            (Some(kind), None) => kind.to_owned(),
            (None, _) => String::new(),
        };
        print_line(format!("{name:<18} {value:<40} {source}"))?;
    }
    Ok(())
}
