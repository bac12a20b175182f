//! `grove start`

use super::open::page_address;
use super::{Failure, command_runtime, print_line, print_page_url};
use crate::background::find_or_start_host;
use crate::cli::{Common, ServeArgs, StartArgs};
use crate::settings::Settings;

pub(crate) fn run(common: &Common, args: &StartArgs) -> Result<(), Failure> {
    let serve = ServeArgs { idle_exit: args.idle_exit, ..ServeArgs::default() };
    let settings = Settings::load(common, &serve)?;
    let runtime = command_runtime()?;
    let found = runtime.block_on(find_or_start_host(&settings))?;
    let (endpoint, pid) = (&found.endpoint, found.health.pid);
    if args.json {
        return Ok(print_line(serde_json::json!({
            "started": found.started,
            "http": endpoint.http,
            "ws": endpoint.ws,
            "page": runtime.block_on(page_address(common, endpoint)),
            "pid": pid,
        }))?);
    }
    let data_dir = settings.data_dir.value.display();
    if found.started {
        print_line(format!("started process {pid} at {} (data in {data_dir})", endpoint.http))?;
    } else {
        print_line(format!("process {pid} is running already at {} (data in {data_dir})", endpoint.http))?;
    }
    print_page_url(endpoint)?;
    Ok(())
}
