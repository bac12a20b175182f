//! The effective settings, as `grove config show` prints them.

use grove_host::administration::AdministrationRefusal;
use grove_wire::x_grove::administration::settings::{SettingRow, SettingsResult};
use serde_json::Value;

use super::refusal::failed;
use crate::settings::Settings;

/// Lists the settings with their sources. Tables that may hold secrets have only their names.
pub(super) fn list(settings: &Settings) -> Result<SettingsResult, AdministrationRefusal> {
    let Value::Object(all) = serde_json::to_value(settings).map_err(|error| failed(error.to_string()))? else {
        return Err(failed("the settings are no object"));
    };
    let row = |(name, mut setting): (String, Value)| {
        let source = setting["source"].take();
        let text = |member: &str| source[member].as_str().map(ToOwned::to_owned);
        let (source, source_name) = (text("kind").unwrap_or_default(), text("name"));
        SettingRow { name, value: setting["value"].take(), source, source_name }
    };
    Ok(SettingsResult {
        config_file: settings.config_file.display().to_string(),
        config_file_exists: settings.config_file.exists(),
        settings: all.into_iter().map(row).collect(),
    })
}
