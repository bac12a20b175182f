//! The commands that install an agent.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use grove_agents::catalog::{AgentEntry, AgentPackage, BinaryTarget, look_up, platform};

use super::requirements::{RequirementError, node, python};

/// The steps to install an agent into a folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct InstallPlan {
    pub(crate) agent: String,
    pub(crate) kind: &'static str,
    pub(crate) version: String,
    /// The new folder of this version.
    pub(crate) folder: PathBuf,
    pub(crate) steps: Vec<InstallStep>,
    /// Paths in which its program can be afterwards, the best first.
    pub(crate) programs: Vec<PathBuf>,
}

/// A step of an installation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum InstallStep {
    /// Run a program with these arguments. A person would type its `name`.
    Run { program: PathBuf, args: Vec<String>, name: String },
    /// Download a file, and compare its checksum.
    Download { url: String, sha256: String, to: PathBuf },
    /// Make a file executable.
    MakeExecutable { path: PathBuf },
}

/// The reason why an agent cannot be installed here.
#[derive(Debug, thiserror::Error)]
pub(crate) enum PlanError {
    #[error("Grove cannot install {name}: {instructions}")]
    Manual { name: String, instructions: String },
    #[error("{name} comes in a kind of package that this Grove does not know: update Grove, or install it by hand")]
    UnknownKind { name: String },
    #[error(
        "the catalog has no download of {name} for {}: install it by hand, then `grove agents` finds it in PATH",
        platform()
    )]
    Platform { name: String },
    #[error("{program} is missing, which installs {name}: install {program}, then try again")]
    MissingInstaller { name: String, program: &'static str },
    #[error(transparent)]
    Requirement(#[from] RequirementError),
}

impl InstallPlan {
    /// Plans the installation of an agent into a new folder. `path` is searched for the installers.
    pub(crate) async fn new(entry: &AgentEntry, folder: PathBuf, path: &OsStr) -> Result<Self, PlanError> {
        let name = || entry.display_name.clone();
        let installer = |program: &'static str| {
            look_up(program, path).ok_or_else(|| PlanError::MissingInstaller { name: name(), program })
        };
        let in_bin = |bin: PathBuf| entry.commands.iter().map(|command| bin.join(command)).collect();
        let (steps, programs) = match &entry.package {
            AgentPackage::Npm { name: package, version, node: needed } => {
                if let Some(needed) = needed {
                    node(&entry.display_name, needed, path).await?;
                }
                let prefix = folder.display().to_string();
                let args = words(["install", "--prefix", &prefix, "--no-fund", "--no-audit"]);
                let step = run(installer("npm")?, args, format!("{package}@{version}"));
                (vec![step], in_bin(folder.join("node_modules/.bin")))
            }
            AgentPackage::Bun { name: package, version } => {
                let cwd = folder.display().to_string();
                let step = run(installer("bun")?, words(["add", "--cwd", &cwd]), format!("{package}@{version}"));
                (vec![step], in_bin(folder.join("node_modules/.bin")))
            }
            AgentPackage::Pypi { name: package, version, python: needed } => {
                let steps = pypi(entry, &folder, package, version, needed.as_deref(), path).await?;
                (steps, in_bin(folder.join("bin")))
            }
            AgentPackage::Binary { .. } => {
                let target = entry.package.target().ok_or_else(|| PlanError::Platform { name: name() })?;
                (binary(entry, &folder, target, path)?, vec![folder.join(&target.program)])
            }
            AgentPackage::Manual { instructions } => {
                return Err(PlanError::Manual { name: name(), instructions: instructions.clone() });
            }
            AgentPackage::Unknown => return Err(PlanError::UnknownKind { name: name() }),
        };
        let version = entry.package.version().unwrap_or_default().to_owned();
        Ok(Self { agent: entry.id.clone(), kind: entry.package.kind(), version, folder, steps, programs })
    }

    /// The commands as a person would type them.
    pub(crate) fn commands(&self) -> Vec<String> {
        self.steps.iter().map(InstallStep::words).collect()
    }
}

/// The obstacle to installing an agent that can be seen without running anything: a missing installer, for example.
pub(crate) fn obstacle(entry: &AgentEntry, path: &OsStr) -> Option<PlanError> {
    let name = || entry.display_name.clone();
    let missing = |program: &'static str| {
        look_up(program, path).is_none().then(|| PlanError::MissingInstaller { name: name(), program })
    };
    match &entry.package {
        AgentPackage::Npm { .. } => missing("npm"),
        AgentPackage::Bun { .. } => missing("bun"),
        // A Python is asked for its version when the installation is planned.
        AgentPackage::Pypi { .. } => missing("uv").and_then(|_| missing("python3")),
        AgentPackage::Binary { .. } if entry.package.target().is_none() => Some(PlanError::Platform { name: name() }),
        AgentPackage::Binary { .. } => None,
        AgentPackage::Manual { instructions } => {
            Some(PlanError::Manual { name: name(), instructions: instructions.clone() })
        }
        AgentPackage::Unknown => Some(PlanError::UnknownKind { name: name() }),
    }
}

impl InstallStep {
    /// The step as a person would type it.
    pub(crate) fn words(&self) -> String {
        match self {
            InstallStep::Run { name, args, .. } => {
                std::iter::once(name).chain(args).map(String::as_str).collect::<Vec<_>>().join(" ")
            }
            InstallStep::Download { url, sha256, to } => {
                format!("curl --fail --location --output {} {url}   # SHA-256 {sha256}", to.display())
            }
            InstallStep::MakeExecutable { path } => format!("chmod +x {}", path.display()),
        }
    }
}

fn words<const N: usize>(words: [&str; N]) -> Vec<String> {
    words.map(ToOwned::to_owned).to_vec()
}

/// Runs an installer, which was found in `PATH`.
fn run(program: PathBuf, mut args: Vec<String>, last: String) -> InstallStep {
    args.push(last);
    let name = program.file_name().unwrap_or(program.as_os_str()).to_string_lossy().into_owned();
    InstallStep::Run { program, args, name }
}

/// Runs a program that an earlier step has made.
fn run_made(program: PathBuf, mut args: Vec<String>, last: String) -> InstallStep {
    args.push(last);
    let name = program.display().to_string();
    InstallStep::Run { program, args, name }
}

async fn pypi(
    entry: &AgentEntry,
    folder: &Path,
    package: &str,
    version: &str,
    needed: Option<&str>,
    path: &OsStr,
) -> Result<Vec<InstallStep>, PlanError> {
    let (place, inside) = (folder.display().to_string(), folder.join("bin/python"));
    let requirement = format!("{package}=={version}");
    // uv brings a fitting Python along.
    if let Some(uv) = look_up("uv", path) {
        let mut venv = words(["venv", "--quiet"]);
        if let Some(needed) = needed {
            venv.extend(["--python".to_owned(), format!(">={needed}")]);
        }
        let args = words(["pip", "install", "--python", &inside.display().to_string()]);
        return Ok(vec![run(uv.clone(), venv, place), run(uv, args, requirement)]);
    }
    let python = python(&entry.display_name, needed, path).await?;
    let args = words(["-m", "pip", "install", "--disable-pip-version-check", "--no-input"]);
    Ok(vec![run(python, words(["-m", "venv"]), place), run_made(inside, args, requirement)])
}

fn binary(
    entry: &AgentEntry,
    folder: &Path,
    target: &BinaryTarget,
    path: &OsStr,
) -> Result<Vec<InstallStep>, PlanError> {
    let BinaryTarget { url, sha256, program } = target;
    let file = url.split(['?', '#']).next().unwrap_or(url).to_ascii_lowercase();
    let is_tar = [".tar.gz", ".tgz", ".tar.bz2", ".tbz2", ".tar.xz"].iter().any(|suffix| file.ends_with(suffix));
    let is_zip = file.ends_with(".zip");
    let made = folder.join(program);
    let to = if is_tar || is_zip { folder.join("download") } else { made.clone() };
    let mut steps = vec![InstallStep::Download { url: url.clone(), sha256: sha256.clone(), to: to.clone() }];
    let installer = |program: &'static str| {
        let name = entry.display_name.clone();
        look_up(program, path).ok_or(PlanError::MissingInstaller { name, program })
    };
    let (place, archive) = (folder.display().to_string(), to.display().to_string());
    if is_tar {
        let args = words(["--extract", "--no-same-owner", "--directory", &place, "--file"]);
        steps.push(run(installer("tar")?, args, archive));
    } else if is_zip {
        steps.push(run(installer("unzip")?, words(["-q", "-d", &place]), archive));
    }
    steps.push(InstallStep::MakeExecutable { path: made });
    Ok(steps)
}
