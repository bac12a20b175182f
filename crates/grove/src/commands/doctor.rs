//! `grove doctor`

use grove_history::catalog::{Catalog, DoctorFinding, DoctorReport, check};
use serde_json::{Value, json};

use super::agents::list::{AgentHealth, installed_agents};
use super::{Failure, command_runtime, exit, print_line};
use crate::chat_client::tree::AnyClient;
use crate::cli::{Common, HistoryArgs, ServeArgs};
use crate::connect::HostConnector;
use crate::history::{DATABASE, roots};
use crate::settings::Settings;
use crate::show::style::sanitize;

/// The number of findings of each kind that are shown. `--json` has them all.
const SHOWN: usize = 20;

pub(crate) fn run(common: &Common, args: &HistoryArgs) -> Result<(), Failure> {
    let settings = Settings::load(common, &ServeArgs::default())?;
    let connector = HostConnector::new(common, &args.connect)?;
    let agents = command_runtime()?.block_on(async {
        let client = AnyClient::connect(&connector, args.connect.protocol).await?;
        super::history::refresh(&client).await?;
        Ok::<_, Failure>(installed_agents(&settings).await)
    })?;
    let checkup = if settings.history.value.enabled {
        let catalog = Catalog::open_read_only(&settings.data_dir.value.join(DATABASE))?;
        check(&catalog, &roots(&settings))?
    } else {
        DoctorReport::default()
    };
    if args.json {
        let mut report = serde_json::to_value(&checkup)?;
        report["agents"] = agents.iter().map(agent_json).collect();
        report["catalogProblem"] = json!(settings.catalog.problem);
        print_line(report)?;
    } else {
        tell(&checkup)?;
        tell_agents(&agents, &settings)?;
    }
    if checkup.is_well() { Ok(()) } else { Err(Failure::Exit(exit::DAMAGED)) }
}

fn agent_json(agent: &AgentHealth) -> Value {
    let (known, install) = agent.newer.clone().unzip();
    json!({ "provider": agent.id, "version": agent.version, "newerVersion": known, "install": install })
}

fn tell_agents(agents: &[AgentHealth], settings: &Settings) -> Result<(), Failure> {
    for AgentHealth { id, version, newer } in agents {
        let version = sanitize(version.as_deref().unwrap_or("of an unknown version"));
        match newer {
            Some((known, install)) => {
                print_line(format!("agent  {id} {version}, and {known} is known: {}", sanitize(install)))?;
            }
            None => print_line(format!("agent  {id} {version}"))?,
        }
    }
    if let Some(problem) = &settings.catalog.problem {
        anstream::eprintln!("{}", sanitize(problem));
    }
    Ok(())
}

fn tell(checkup: &DoctorReport) -> Result<(), Failure> {
    print_line(format!("{} files named like sessions, {} of them shown", checkup.files, checkup.shown))?;
    for (what, suspects) in [
        ("damaged", &checkup.damaged),
        ("orphaned", &checkup.orphaned),
        ("lost", &checkup.lost),
        ("unknown", &checkup.unknown),
    ] {
        for suspect in suspects.iter().take(SHOWN) {
            print_line(line(what, suspect))?;
        }
        if suspects.len() > SHOWN {
            print_line(format!("{what}  and {} more (--json lists them)", suspects.len() - SHOWN))?;
        }
    }
    for problem in &checkup.problems {
        anstream::eprintln!("{}", sanitize(problem));
    }
    if checkup.is_well() {
        print_line("nothing is wrong")?;
    }
    Ok(())
}

fn line(what: &str, suspect: &DoctorFinding) -> String {
    let path = suspect.path.display().to_string();
    let places = suspect.damage.iter().flat_map(|damage| &damage.places).map(|place| match place.line {
        Some(line) => format!("line {line}: {}", place.what),
        None => format!("byte {}: {}", place.offset, place.what),
    });
    let mut words = vec![format!("{what}  {}  {}", suspect.source, sanitize(&path))];
    words.extend(places.take(3).map(|place| format!("    {}", sanitize(&place))));
    words.join("\n")
}
