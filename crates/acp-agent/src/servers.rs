//! The editor's MCP servers, for the agent of a session.

use std::collections::BTreeMap;

use agent_client_protocol_schema::v1 as acp;
use grove_wire::jsonrpc::ErrorObject;
use grove_wire::x_grove::{Method, SetupParams, SetupResult};
use serde::Serialize;
use serde_json::{Value, json};

use crate::host::{HostConnection, refusal};
use crate::session::session_uri;

/// The params of the request: the members of the setup beside the session.
#[derive(Serialize)]
struct SessionSetup {
    channel: String,
    #[serde(flatten)]
    setup: SetupParams,
}

/// Gives a session's agent the servers. An agent that cannot reach one is a reason to refuse all.
///
/// An editor without servers changes nothing: the session may have some from elsewhere.
pub(crate) async fn give(host: &HostConnection, id: &str, servers: &[acp::McpServer]) -> Result<(), ErrorObject> {
    if servers.is_empty() {
        return Ok(());
    }
    let mcp_servers = Some(servers.iter().map(described).collect::<Result<_, _>>()?);
    let params =
        SessionSetup { channel: session_uri(id), setup: SetupParams { mcp_servers, ..SetupParams::default() } };
    let given = host.client.request_raw::<SetupResult>(Method::Setup.as_str(), &params).await;
    given.map(drop).map_err(|error| refusal(&error))
}

/// A server as the host names it.
fn described(server: &acp::McpServer) -> Result<Value, ErrorObject> {
    let headers = |headers: &[acp::HttpHeader]| {
        headers.iter().map(|header| (header.name.clone(), header.value.clone())).collect::<BTreeMap<_, _>>()
    };
    match server {
        acp::McpServer::Stdio(server) => {
            let env = server.env.iter().map(|variable| (variable.name.clone(), variable.value.clone()));
            let env: BTreeMap<_, _> = env.collect();
            Ok(json!({
                "name": server.name, "type": "stdio", "command": server.command, "args": server.args, "env": env,
            }))
        }
        acp::McpServer::Http(server) => Ok(json!({
            "name": server.name, "type": "http", "url": server.url, "headers": headers(&server.headers),
        })),
        acp::McpServer::Sse(server) => Ok(json!({
            "name": server.name, "type": "sse", "url": server.url, "headers": headers(&server.headers),
        })),
        _ => Err(ErrorObject::invalid_params("an MCP server has a transport that Grove does not know: leave it out")),
    }
}
