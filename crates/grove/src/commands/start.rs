//! `grove start`

use super::{Failure, errand, say, say_page};
use crate::background::find_or_start_host;
use crate::cli::{Common, ServeArgs, StartArgs};
use crate::settings::Settings;

pub(crate) fn run(common: &Common, args: &StartArgs) -> Result<(), Failure> {
    let serve = ServeArgs { idle_exit: args.idle_exit, ..ServeArgs::default() };
    let settings = Settings::load(common, &serve)?;
    let found = errand()?.block_on(find_or_start_host(&settings))?;
    let (endpoint, pid) = (&found.endpoint, found.health.pid);
    if args.json {
        return Ok(say(serde_json::json!({
            "started": found.started,
            "http": endpoint.http,
            "ws": endpoint.ws,
            "page": endpoint.page(),
            "pid": pid,
        }))?);
    }
    let data_dir = settings.data_dir.value.display();
    if found.started {
        say(format!("started process {pid} at {} (data in {data_dir})", endpoint.http))?;
    } else {
        say(format!("process {pid} is running already at {} (data in {data_dir})", endpoint.http))?;
    }
    say_page(endpoint)?;
    Ok(())
}
