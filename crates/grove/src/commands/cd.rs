//! `grove cd`

use grove_wire::x_grove::SetWorkingDirectoryParams;
use serde_json::json;

use super::folder::{far_folder, local_folder};
use super::{Failure, command_runtime, print_line};
use crate::chat_client::tree::TreeClient;
use crate::cli::{CdArgs, Common};
use crate::connect::{HostConnector, id_of};
use crate::show::style::sanitize;

pub(crate) fn run(common: &Common, args: &CdArgs) -> Result<(), Failure> {
    let connector = HostConnector::new(common, &args.connect)?;
    command_runtime()?.block_on(async {
        let (connector, session) = connector.at_session(&args.session.reference).await?;
        let folder = if connector.is_remote() { far_folder(&args.folder)? } else { local_folder(&args.folder)? };
        let tree = TreeClient::of_session(&connector, &session, args.connect.protocol).await?;
        let wanted = SetWorkingDirectoryParams { directory: grove_work::file_uri(&folder) };
        let directory = tree.set_working_directory(&wanted).await?.directory;
        let path = grove_work::local_path(&directory).map_or(directory, |path| path.display().to_string());
        if args.json {
            return Ok(print_line(json!({"session": tree.session(), "cwd": path}))?);
        }
        Ok(print_line(format!("{} works in {}", id_of(tree.session()), sanitize(&path)))?)
    })
}
