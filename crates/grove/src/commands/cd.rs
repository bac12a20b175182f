//! `grove cd`

use grove_wire::x_grove::SetWorkingDirectoryParams;
use serde_json::json;

use super::folder::{far_folder, local_folder};
use super::{Failure, errand, say};
use crate::cli::{CdArgs, Common};
use crate::connect::{Reach, id_of};
use crate::show::style::harmless;
use crate::talk::tree::Tree;

pub(crate) fn run(common: &Common, args: &CdArgs) -> Result<(), Failure> {
    let reach = Reach::new(common, &args.connect)?;
    errand()?.block_on(async {
        let (reach, session) = reach.at_session(&args.session).await?;
        let folder = if reach.is_far() { far_folder(&args.folder)? } else { local_folder(&args.folder)? };
        let tree = Tree::of_session(&reach, &session, args.connect.protocol).await?;
        let wanted = SetWorkingDirectoryParams { directory: grove_work::file_uri(&folder) };
        let directory = tree.set_working_directory(&wanted).await?.directory;
        let path = grove_work::local_path(&directory).map_or(directory, |path| path.display().to_string());
        if args.json {
            return Ok(say(json!({"session": tree.session(), "cwd": path}))?);
        }
        Ok(say(format!("{} works in {}", id_of(tree.session()), harmless(&path)))?)
    })
}
