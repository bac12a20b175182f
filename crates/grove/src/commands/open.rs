//! `grove open`

use std::net::SocketAddr;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, anyhow};
use grove_wire::x_grove::Method;
use grove_wire::x_grove::tokens::{IssueCodeResult, TokensMethod};
use qrcode::render::unicode;
use qrcode::{EcLevel, QrCode};
use serde_json::json;

use super::{Failure, command_runtime, print_line};
use crate::background::find_or_start_host;
use crate::chat_client::tree::AnyClient;
use crate::cli::{Common, ConnectArgs, OpenArgs, Protocol, ServeArgs};
use crate::connect::HostConnector;
use crate::endpoint::HostEndpoint;
use crate::settings::Settings;

/// The error if no phone can reach the host, with the next step.
const NO_PHONE_ADDRESS: &str = "no phone can reach this host: it listens on no other address with TLS. Stop it (`grove stop`) and \
     start it with `grove serve --listen 0.0.0.0:7443 --tls-cert cert.pem --tls-key key.pem`";

/// The error if a phone would be refused, with the next step.
const NO_PHONE_NAME: &str = "no phone can reach this host under a name: its certificate is not for the name of this machine. Start it \
     with `--host-name NAME`, a name of the certificate, or listen on one address in place of 0.0.0.0";

/// How long an opener may take to fail. One that still runs then has become the browser.
const TIMEOUT: Duration = Duration::from_secs(3);

pub(crate) fn run(common: &Common, args: &OpenArgs) -> Result<(), Failure> {
    let settings = Settings::load(common, &ServeArgs::default())?;
    let runtime = command_runtime()?;
    let endpoint = runtime.block_on(find_or_start_host(&settings))?.endpoint;
    if args.qr {
        let base = phone_address(&endpoint).map_err(|reason| anyhow!(reason))?;
        let IssueCodeResult { secret: code, .. } = runtime.block_on(issue_code(common))?;
        return print_qr(&format!("{base}/#code={code}"));
    }
    let IssueCodeResult { secret: code, .. } = runtime.block_on(issue_code(common))?;
    let page = endpoint.page_with_code(&code);
    if !args.print && open(&page) {
        print_line(format!("opened {} in the browser", endpoint.http))?;
    } else {
        // The user asked for the address, so it is printed even if stdout is not a terminal.
        print_line(page)?;
        anstream::eprintln!("this address is good once, for a minute");
    }
    Ok(())
}

/// The address of the page with a one-time code, or without one if the host issues none to this process.
pub(super) async fn page_address(common: &Common, endpoint: &HostEndpoint) -> String {
    match issue_code(common).await {
        Ok(issued) => endpoint.page_with_code(&issued.secret),
        Err(_) => endpoint.page(),
    }
}

/// Gets a one-time code of the host of this data folder.
async fn issue_code(common: &Common) -> Result<IssueCodeResult, Failure> {
    let local = ConnectArgs { host: Some("local".to_owned()), no_start: true, protocol: Protocol::Ahp };
    let client = AnyClient::connect(&HostConnector::new(common, &local)?, local.protocol).await?;
    client.ask(Method::Tokens(TokensMethod::IssueCode), &json!({})).await
}

/// The address of the page for a phone: other machines reach it, with TLS, under a name that the host accepts.
fn phone_address(endpoint: &HostEndpoint) -> Result<String, &'static str> {
    let remote = endpoint.remote.as_ref().filter(|remote| remote.certificate.is_some()).ok_or(NO_PHONE_ADDRESS)?;
    let address = remote.http.strip_prefix("https://").and_then(|address| address.parse::<SocketAddr>().ok());
    let address = address.filter(|address| !address.ip().is_loopback()).ok_or(NO_PHONE_ADDRESS)?;
    match &remote.name {
        Some(name) => Ok(format!("https://{name}:{}", address.port())),
        None if address.ip().is_unspecified() => Err(NO_PHONE_NAME),
        None => Ok(remote.http.clone()),
    }
}

/// Prints an address as a QR code, two rows of modules in a line of text.
fn print_qr(address: &str) -> Result<(), Failure> {
    let code =
        QrCode::with_error_correction_level(address, EcLevel::L).context("the address is too long for a QR code")?;
    let picture = code.render::<unicode::Dense1x2>().quiet_zone(true).build();
    for line in picture.lines() {
        print_line(line)?;
    }
    print_line(address)?;
    anstream::eprintln!("scan it with the phone within a minute; `grove token ls` lists the phone afterwards");
    Ok(())
}

/// Opens an address in the browser, if there is one.
fn open(url: &str) -> bool {
    let program = if cfg!(target_os = "macos") {
        "open"
    } else if has_screen() {
        "xdg-open"
    } else {
        return false;
    };
    let mut command = Command::new(program);
    let spawned = command.arg(url).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
    let Ok(mut process) = spawned else { return false };
    let since = Instant::now();
    while since.elapsed() < TIMEOUT {
        match process.try_wait() {
            Ok(Some(status)) => return status.success(),
            Ok(None) => std::thread::sleep(Duration::from_millis(10)),
            Err(_) => return false,
        }
    }
    true
}

/// Returns whether there is a graphical display. Without one, a browser could take over the terminal.
fn has_screen() -> bool {
    ["DISPLAY", "WAYLAND_DISPLAY"].iter().any(|name| std::env::var_os(name).is_some_and(|value| !value.is_empty()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::endpoint::RemoteAddress;

    #[test]
    fn a_phone_gets_an_address_that_the_host_accepts() {
        let base = |address: &str, certificate: Option<&str>, name: Option<&str>| {
            let remote = RemoteAddress {
                ws: String::new(),
                http: format!("https://{address}"),
                certificate: certificate.map(str::to_owned),
                name: name.map(str::to_owned),
            };
            let endpoint = HostEndpoint {
                ws: String::new(),
                http: String::new(),
                token: String::new(),
                pid: 1,
                copilot: None,
                unix: None,
                remote: Some(remote),
            };
            phone_address(&endpoint)
        };
        let pin = Some("sha256:00");
        assert_eq!(base("0.0.0.0:7443", pin, Some("lab.example")).as_deref(), Ok("https://lab.example:7443"));
        assert_eq!(base("10.0.0.7:7443", pin, Some("lab.example")).as_deref(), Ok("https://lab.example:7443"));
        assert_eq!(base("10.0.0.7:7443", pin, None).as_deref(), Ok("https://10.0.0.7:7443"));
        assert_eq!(base("0.0.0.0:7443", pin, None), Err(NO_PHONE_NAME), "the host would refuse any name");
        assert_eq!(base("127.0.0.1:7443", pin, Some("lab.example")), Err(NO_PHONE_ADDRESS));
        assert_eq!(base("10.0.0.7:7443", None, Some("lab.example")), Err(NO_PHONE_ADDRESS));
    }
}
