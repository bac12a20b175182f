//! The requests of "always allow", the same in either protocol.

use anyhow::{Result, anyhow};
use grove_wire::x_grove::Method;
use grove_wire::x_grove::policy::{
    PolicyAllowParams, PolicyAllowResult, PolicyMethod, PolicyOffersParams, PolicyOffersResult,
};

use super::tree::{AnyClient, ChannelParams};
use super::{AlwaysChoice, ApprovalStage, ToolPermission};

const OFFERS: Method = Method::Policy(PolicyMethod::Offers);
const ALLOW: Method = Method::Policy(PolicyMethod::Allow);

/// Asks for the rules that would answer a permission request. A host without rules offers none.
pub(super) async fn offers(client: &AnyClient, channel: &str, permission: &ToolPermission) -> PolicyOffersResult {
    if permission.about == ApprovalStage::Result || !client.offers(OFFERS) {
        return PolicyOffersResult::default();
    }
    let params = PolicyOffersParams { request: permission.request.clone() };
    // Without offers, yes and no are left.
    client.ask(OFFERS, &ChannelParams { channel, params: &params }).await.unwrap_or_default()
}

/// Stores an offered rule.
pub(super) async fn allow(
    client: &AnyClient,
    channel: &str,
    permission: &ToolPermission,
    choice: AlwaysChoice,
) -> Result<PolicyAllowResult> {
    let params =
        PolicyAllowParams { request: permission.request.clone(), target: choice.target, rule: choice.rule.toml };
    let allowed = client.ask(ALLOW, &ChannelParams { channel, params: &params }).await;
    allowed.map_err(|failure| anyhow!("{failure}"))
}
