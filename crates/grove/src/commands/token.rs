//! `grove token`

use grove_wire::x_grove::Method;
use grove_wire::x_grove::tokens::{
    AddTokenParams, RevokeTokenResult, TokenNameParams, TokenRow, TokenSecretResult, TokensListResult, TokensMethod,
};
use serde_json::json;

use super::{Failure, command_runtime, print_line};
use crate::chat_client::tree::AnyClient;
use crate::cli::{Common, ConnectArgs, TokenAddArgs, TokenArgs, TokenCommand, TokenLsArgs, TokenNameArgs};
use crate::connect::HostConnector;
use crate::show::style::{bold, sanitize};
use crate::show::table::lines;

pub(crate) fn run(common: &Common, args: &TokenArgs) -> Result<(), Failure> {
    command_runtime()?.block_on(async {
        match &args.command {
            TokenCommand::Add(args) => add(&connect(common, &args.connect).await?, args).await,
            TokenCommand::Ls(args) => list(&connect(common, &args.connect).await?, args).await,
            TokenCommand::Revoke(args) => revoke(&connect(common, &args.connect).await?, args).await,
            TokenCommand::Rotate(args) => rotate(&connect(common, &args.connect).await?, args).await,
        }
    })
}

async fn connect(common: &Common, args: &ConnectArgs) -> Result<AnyClient, Failure> {
    AnyClient::connect(&HostConnector::new(common, args)?, args.protocol).await
}

async fn add(client: &AnyClient, args: &TokenAddArgs) -> Result<(), Failure> {
    let params = AddTokenParams {
        name: args.name.clone(),
        scopes: args.can.iter().map(|scope| scope.as_str().to_owned()).collect(),
        expires_in_ms: args.expires.map(|time| u64::try_from(time.as_millis()).unwrap_or(u64::MAX)),
    };
    let TokenSecretResult { token } = client.ask(Method::Tokens(TokensMethod::Add), &params).await?;
    print_secret(&args.name, &token, args.json)
}

/// Prints a secret that the host has no copy of.
fn print_secret(name: &str, token: &str, as_json: bool) -> Result<(), Failure> {
    if as_json {
        return Ok(print_line(json!({ "name": name, "token": token }))?);
    }
    print_line(sanitize(token))?;
    anstream::eprintln!("this is the only time that the token is shown: it gives access to the host");
    Ok(())
}

async fn list(client: &AnyClient, args: &TokenLsArgs) -> Result<(), Failure> {
    let method = Method::Tokens(TokensMethod::List);
    let TokensListResult { tokens } = client.ask(method, &json!({})).await?;
    if args.json {
        return Ok(print_line(json!({ "tokens": tokens }))?);
    }
    let head = ["NAME", "CAN", "EXPIRES"].map(str::to_owned).to_vec();
    let rows = tokens.iter().map(|row| vec![sanitize(&row.name), sanitize(&row.scopes.join(",")), expiry(row)]);
    let table = lines(&std::iter::once(head).chain(rows).collect::<Vec<_>>());
    for (at, line) in table.iter().enumerate() {
        if at == 0 { print_line(bold(line))? } else { print_line(line)? }
    }
    Ok(())
}

fn expiry(row: &TokenRow) -> String {
    let time =
        row.expires_at.and_then(|at| i64::try_from(at).ok()).and_then(|at| jiff::Timestamp::from_millisecond(at).ok());
    match (row.expires_at, time) {
        (_, Some(time)) => time.strftime("%Y-%m-%d %H:%M").to_string(),
        (Some(_), None) | (None, None) => "never".to_owned(),
    }
}

async fn revoke(client: &AnyClient, args: &TokenNameArgs) -> Result<(), Failure> {
    let params = TokenNameParams { name: args.name.clone() };
    let RevokeTokenResult {} = client.ask(Method::Tokens(TokensMethod::Revoke), &params).await?;
    if args.json {
        return Ok(print_line(json!({ "name": args.name, "revoked": true }))?);
    }
    Ok(print_line(sanitize(&format!("{} gives no access any more; its connections are closed", args.name)))?)
}

async fn rotate(client: &AnyClient, args: &TokenNameArgs) -> Result<(), Failure> {
    let params = TokenNameParams { name: args.name.clone() };
    let TokenSecretResult { token } = client.ask(Method::Tokens(TokensMethod::Rotate), &params).await?;
    print_secret(&args.name, &token, args.json)
}
