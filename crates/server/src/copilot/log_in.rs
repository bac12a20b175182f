//! The log-in of a client that has to send a secret first.

use std::sync::Arc;

use grove_core::ScopeSet;
use grove_host::audit::AuditOutcome;
use grove_host::tokens::HOST_TOKEN_NAME;
use grove_wire::copilot::error;
use grove_wire::copilot::methods::{self, ConnectParams, ConnectResult, Method};
use serde_json::value::RawValue;

use super::endpoint::EndpointLogin;
use super::peer::{CopilotError, CopilotPeer};
use crate::http::{Admission, TokenId};
use crate::listener::PeerAddress;
use crate::principal::Principal;
use crate::recording;

/// A client that has to send a secret first.
pub(crate) struct UnauthenticatedClient {
    /// The client's own address, also if a program carries its bytes.
    pub(crate) address: PeerAddress,
    /// The program that carries its bytes, whose rights the secret gives.
    pub(crate) carrier: Option<Arc<Principal>>,
    pub(crate) admission: Admission,
}

impl CopilotPeer {
    /// Answers `connect`. A client without a log-in gets the rights of its secret.
    pub(super) async fn connect(&self, params: Option<&RawValue>) -> Result<ConnectResult, CopilotError> {
        if let Some(unauthenticated) = self.unauthenticated().filter(|_| !self.is_in()) {
            self.log_in(unauthenticated, params).await?;
        }
        Ok(ConnectResult::of(env!("CARGO_PKG_VERSION")))
    }

    async fn log_in(
        &self,
        unauthenticated: &UnauthenticatedClient,
        params: Option<&RawValue>,
    ) -> Result<(), CopilotError> {
        let (host, operation) = (self.host(), Method::Connect.as_str());
        let params: ConnectParams = methods::params(operation, params).map_err(CopilotError::Error)?;
        let guess = params.token.unwrap_or_default();
        let Some(login) = self.endpoint().open_with(&guess) else {
            if !guess.is_empty() {
                unauthenticated.admission.refuse();
                self.endpoint().wrong_tokens().delay(host, unauthenticated.address, operation).await;
            }
            return Err(CopilotError::Error(error::authentication_failed()));
        };
        let principal = match (&login, &unauthenticated.carrier) {
            (EndpointLogin::Token(grant), _) => Arc::new(Principal::of_token(grant.clone(), unauthenticated.address)),
            (EndpointLogin::Secret, Some(carrier)) => carrier.clone(),
            // A port's own secret counts as the host's token: programs that open ports hold that one.
            (EndpointLogin::Secret, None) => {
                Arc::new(Principal::new(HOST_TOKEN_NAME, ScopeSet::ALL, unauthenticated.address))
            }
        };
        let record = recording::begin(host, &principal, Some(self.client()), ScopeSet::NONE, operation, None);
        // A carried client has the slot of its carrier already.
        let token = principal.token_id().map_or(TokenId::Host, TokenId::Named);
        if let Err(full) = unauthenticated.admission.admit(token, principal.name()) {
            record.finish(AuditOutcome::Refused, Some(&full.to_string()));
            return Err(full.into());
        }
        if let (Some(tokens), EndpointLogin::Token(grant)) = (host.tokens(), &login) {
            tokens.used(grant);
        }
        self.admit(principal);
        record.finish(AuditOutcome::Done, None);
        Ok(())
    }
}
