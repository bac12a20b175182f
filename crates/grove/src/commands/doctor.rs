//! `grove doctor`

use grove_history::catalog::{Catalog, Checkup, Suspect, check};

use super::{Failure, errand, exit, say};
use crate::cli::{Common, HistoryArgs, ServeArgs};
use crate::connect::Reach;
use crate::history::{DATABASE, roots};
use crate::settings::Settings;
use crate::show::style::harmless;
use crate::talk::tree::AnyClient;

/// How many of each kind are shown. `--json` has them all.
const SHOWN: usize = 20;

pub(crate) fn run(common: &Common, args: &HistoryArgs) -> Result<(), Failure> {
    let settings = Settings::load(common, &ServeArgs::default())?;
    let reach = Reach::new(common, &args.connect)?;
    errand()?.block_on(async {
        let client = AnyClient::connect(&reach, args.connect.protocol).await?;
        super::history::refresh(&client).await
    })?;
    let checkup = if settings.history.value.enabled {
        let catalog = Catalog::look(&settings.data_dir.value.join(DATABASE))?;
        check(&catalog, &roots(&settings))?
    } else {
        Checkup::default()
    };
    if args.json {
        say(serde_json::to_string(&checkup)?)?;
    } else {
        tell(&checkup)?;
    }
    if checkup.is_well() { Ok(()) } else { Err(Failure::Said(exit::DAMAGED)) }
}

fn tell(checkup: &Checkup) -> Result<(), Failure> {
    say(format!("{} files named like sessions, {} of them shown", checkup.files, checkup.shown))?;
    for (what, suspects) in [
        ("damaged", &checkup.damaged),
        ("orphaned", &checkup.orphaned),
        ("lost", &checkup.lost),
        ("unknown", &checkup.unknown),
    ] {
        for suspect in suspects.iter().take(SHOWN) {
            say(line(what, suspect))?;
        }
        if suspects.len() > SHOWN {
            say(format!("{what}  and {} more (--json lists them)", suspects.len() - SHOWN))?;
        }
    }
    for problem in &checkup.problems {
        anstream::eprintln!("{}", harmless(problem));
    }
    if checkup.is_well() {
        say("nothing is wrong")?;
    }
    Ok(())
}

fn line(what: &str, suspect: &Suspect) -> String {
    let path = suspect.path.display().to_string();
    let places = suspect.damage.iter().flat_map(|damage| &damage.places).map(|place| match place.line {
        Some(line) => format!("line {line}: {}", place.what),
        None => format!("byte {}: {}", place.offset, place.what),
    });
    let mut words = vec![format!("{what}  {}  {}", suspect.source, harmless(&path))];
    words.extend(places.take(3).map(|place| format!("    {}", harmless(&place))));
    words.join("\n")
}
