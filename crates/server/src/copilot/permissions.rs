//! The permissions of a session, as the SDK sets them.
//!
//! Rules are stored with the session. Grove has no rules for a location, which in the SDK apply to a folder in any
//! session: such a request is refused, and the client is told what to do instead.

use std::path::{Path, PathBuf};

use grove_core::*;
use grove_wire::copilot::error;
use grove_wire::copilot::methods::*;

use super::peer::{CopilotError, CopilotPeer, SessionRef};

/// The name of a resumed session's further folders, in refusals and in the audit log.
const ADDITIONAL_FOLDERS: &str = "additionalDirectories";

impl CopilotPeer {
    pub(super) async fn permission_mode(&self, params: SessionParams) -> Result<PermissionModeResult, CopilotError> {
        let session = self.find(&params.session_id).await?;
        Ok(PermissionModeResult { mode: self.mode_now(&session).await? })
    }

    /// Sets the mode. Grove lacks one of the SDK's modes: it has no model that judges tool calls.
    pub(super) async fn set_permission_mode(
        &self,
        params: SetPermissionModeParams,
    ) -> Result<SetPermissionModeResult, CopilotError> {
        let session = self.find(&params.session_id).await?;
        let success = match params.mode.as_str() {
            MANUAL => self.allow_all(&session, false).await.map(|()| true)?,
            ALLOW_ALL => self.allow_all(&session, true).await.map(|()| true)?,
            "assisted" => false,
            other => return Err(CopilotError::Failed(format!("{other:?} is not a mode: use {MANUAL} or {ALLOW_ALL}"))),
        };
        Ok(SetPermissionModeResult { success, mode: self.mode_now(&session).await? })
    }

    pub(super) async fn set_approve_all(&self, params: SetApproveAllParams) -> Result<Success, CopilotError> {
        let session = self.find(&params.session_id).await?;
        self.allow_all(&session, params.enabled).await?;
        Ok(Success::YES)
    }

    pub(super) async fn configure_permissions(
        &self,
        params: ConfigurePermissionsParams,
    ) -> Result<Success, CopilotError> {
        let session = self.find(&params.session_id).await?;
        let ConfigurePermissionsParams { rules: set, paths, urls, .. } = params;
        let mut policy = self.policy(&session).await?;
        let given = set.is_some();
        if let Some(set) = set {
            policy.approved = rules(set.approved)?;
            policy.denied = rules(set.denied)?;
        }
        let reads = params.approve_all_read_permission_requests;
        let anywhere = paths.as_ref().and_then(|paths| paths.unrestricted);
        set_whole(&mut policy.approved, PermissionKind::Read, reads.or(anywhere));
        if let Some(UrlPolicy { unrestricted, initial_allowed }) = urls {
            set_whole(&mut policy.approved, PermissionKind::Url, unrestricted);
            let allowed = initial_allowed.unwrap_or_default().into_iter();
            policy
                .approved
                .extend(allowed.map(|address| PermissionRule { kind: PermissionKind::Url, argument: Some(address) }));
        }
        let change = PermissionsChange::Configure {
            allow_all: params.approve_all_tool_permission_requests,
            approved: Some(policy.approved),
            denied: given.then_some(policy.denied),
            directories: paths.and_then(|paths| paths.additional_directories),
        };
        self.change_permissions(&session, change).await
    }

    pub(super) async fn modify_rules(&self, params: ModifyRulesParams) -> Result<Success, CopilotError> {
        let session = self.find(&params.session_id).await?;
        match params.scope.as_str() {
            "session" => {}
            "location" => return Err(no_locations()),
            other => return Err(CopilotError::Failed(format!("{other:?} is not a scope: use session or location"))),
        }
        let add = rules(params.add.unwrap_or_default())?;
        let remove = rules(params.remove.unwrap_or_default())?;
        let remove_all = params.remove_all.unwrap_or(false);
        self.change_permissions(&session, PermissionsChange::Rules { add, remove, remove_all }).await
    }

    pub(super) async fn reset_approvals(&self, params: SessionParams) -> Result<Success, CopilotError> {
        let session = self.find(&params.session_id).await?;
        self.change_permissions(&session, PermissionsChange::Forget).await
    }

    pub(super) async fn unrestrict_urls(&self, params: SetApproveAllParams) -> Result<Success, CopilotError> {
        let session = self.find(&params.session_id).await?;
        let rule = vec![PermissionRule { kind: PermissionKind::Url, argument: None }];
        let (add, remove) = if params.enabled { (rule, vec![]) } else { (vec![], rule) };
        self.change_permissions(&session, PermissionsChange::Rules { add, remove, remove_all: false }).await
    }

    pub(super) async fn allowed_paths(&self, params: SessionParams) -> Result<AllowedPaths, CopilotError> {
        let session = self.find(&params.session_id).await?;
        self.look(&session, allowed_paths).await
    }

    /// Allows what a session does in these folders, if it may not work there yet. The client must be one that may approve.
    pub(super) async fn allow_folders(&self, session: &SessionRef, folders: &[String]) -> Result<(), CopilotError> {
        let known = self.look(session, allowed_paths).await?.directories;
        let new: Vec<&String> = folders.iter().filter(|folder| !known.contains(folder)).collect();
        if new.is_empty() {
            return Ok(());
        }
        let (needed, client) = (ScopeSet::NONE.with(Scope::Approve), Some(self.client()));
        let allowed =
            self.principal().authorize(self.host(), needed, ADDITIONAL_FOLDERS, client, Some(&session.id)).await;
        allowed.map_err(|forbidden| CopilotError::Failed(forbidden.to_string()))?;
        for folder in new {
            must_be_absolute(folder)?;
            self.change_permissions(session, PermissionsChange::AddDirectory(folder.clone())).await?;
        }
        Ok(())
    }

    pub(super) async fn allow_path(&self, params: PathParams) -> Result<Success, CopilotError> {
        let session = self.find(&params.session_id).await?;
        must_be_absolute(&params.path)?;
        self.change_permissions(&session, PermissionsChange::AddDirectory(params.path)).await
    }

    pub(super) async fn set_primary_path(&self, params: PathParams) -> Result<Success, CopilotError> {
        let session = self.find(&params.session_id).await?;
        must_be_absolute(&params.path)?;
        self.change_permissions(&session, PermissionsChange::Primary(params.path)).await
    }

    pub(super) async fn is_allowed_path(&self, params: PathParams) -> Result<AllowedResult, CopilotError> {
        let session = self.find(&params.session_id).await?;
        let paths = self.look(&session, allowed_paths).await?;
        let mut folders = paths.directories.iter();
        Ok(AllowedResult { allowed: folders.any(|folder| is_within(&params.path, folder)) })
    }

    pub(super) async fn is_workspace_path(&self, params: PathParams) -> Result<AllowedResult, CopilotError> {
        let session = self.find(&params.session_id).await?;
        let primary = self.look(&session, allowed_paths).await?.primary;
        Ok(AllowedResult { allowed: !primary.is_empty() && is_within(&params.path, &primary) })
    }

    /// The repository of a folder, or the folder itself if it is in none.
    pub(super) async fn location(&self, params: LocationParams) -> Result<Location, CopilotError> {
        self.find(&params.session_id).await?;
        must_be_absolute(&params.working_directory)?;
        let folder = PathBuf::from(params.working_directory);
        let found = self.host().env().spawn.run_blocking(move || {
            let repository = folder.ancestors().find(|folder| folder.join(".git").exists()).map(Path::to_owned);
            repository.map_or((folder, "dir"), |repository| (repository, "repo"))
        });
        let (folder, kind) = found.await?;
        Ok(Location { location_key: folder.to_string_lossy().into_owned(), location_type: kind.to_owned() })
    }

    /// Grove stores nothing for a location, so nothing applies.
    pub(super) async fn apply_location(&self, params: LocationParams) -> Result<AppliedLocation, CopilotError> {
        let Location { location_key, location_type } = self.location(params).await?;
        Ok(AppliedLocation { location_key, location_type, ..AppliedLocation::default() })
    }

    pub(super) fn is_trusted(&self, params: PathParams) -> TrustedResult {
        let trusted = self.host().trust().is_some_and(|trust| trust.is_trusted(Path::new(&params.path)));
        TrustedResult { trusted }
    }

    pub(super) fn add_trusted(&self, params: PathParams) -> Result<Success, CopilotError> {
        must_be_absolute(&params.path)?;
        match self.host().trust() {
            Some(trust) => trust.trust(Path::new(&params.path)).map_err(CopilotError::Failed)?,
            None => return Err(CopilotError::Failed("this host keeps no list of trusted folders".to_owned())),
        }
        Ok(Success::YES)
    }

    /// Allows everything in a new session: the program was started with `--allow-all`.
    pub(super) async fn allow_everything(&self, session: &SessionRef) -> Result<(), CopilotError> {
        let (needed, client) = (ScopeSet::NONE.with(Scope::Approve), Some(self.client()));
        let operation = Method::PermissionsSetApproveAll.as_str();
        let allowed = self.principal().authorize(self.host(), needed, operation, client, Some(&session.id)).await;
        allowed.map_err(|forbidden| CopilotError::Error(error::not_permitted(operation, forbidden)))?;
        self.allow_all(session, true).await
    }

    async fn allow_all(&self, session: &SessionRef, allow: bool) -> Result<(), CopilotError> {
        let change =
            PermissionsChange::Configure { allow_all: Some(allow), approved: None, denied: None, directories: None };
        self.change_permissions(session, change).await.map(|_| ())
    }

    async fn mode_now(&self, session: &SessionRef) -> Result<String, CopilotError> {
        let mode = if self.policy(session).await?.allow_all { ALLOW_ALL } else { MANUAL };
        Ok(mode.to_owned())
    }

    async fn policy(&self, session: &SessionRef) -> Result<Permissions, CopilotError> {
        self.look(session, |session| session.details.permissions.clone().unwrap_or_default()).await
    }

    /// Changes the permissions. The session answers the pending requests that they decide.
    async fn change_permissions(
        &self,
        session: &SessionRef,
        change: PermissionsChange,
    ) -> Result<Success, CopilotError> {
        self.carry_out(session, ClientCommand::ChangePermissions(change)).await?;
        Ok(Success::YES)
    }
}

pub(super) fn no_locations() -> CopilotError {
    CopilotError::Failed("Grove keeps rules with a session, not with a folder: use the scope \"session\"".to_owned())
}

fn must_be_absolute(path: &str) -> Result<(), CopilotError> {
    match Path::new(path).is_absolute() {
        true => Ok(()),
        false => Err(CopilotError::Failed(format!("{path:?} is not an absolute path"))),
    }
}

fn allowed_paths(session: &Session) -> AllowedPaths {
    let policy = session.details.permissions.as_ref();
    let mine = session.working_directories.iter().map(|folder| path_of(folder));
    let primary = policy.and_then(|policy| policy.primary.clone()).or_else(|| mine.clone().next()).unwrap_or_default();
    let mut directories = Vec::new();
    let added = policy.into_iter().flat_map(|policy| policy.directories.iter().cloned());
    for folder in std::iter::once(primary.clone()).chain(mine).chain(added) {
        if !folder.is_empty() && !directories.contains(&folder) {
            directories.push(folder);
        }
    }
    AllowedPaths { directories, primary }
}

/// The path of a working directory, which is a URI. URIs of other machines stay as they are.
fn path_of(folder: &str) -> String {
    grove_work::local_path(folder).map_or_else(|_| folder.to_owned(), |path| path.to_string_lossy().into_owned())
}

fn rules(rules: Vec<Rule>) -> Result<Vec<PermissionRule>, CopilotError> {
    rules.into_iter().map(rule).collect()
}

fn rule(rule: Rule) -> Result<PermissionRule, CopilotError> {
    let kind = match rule.kind.to_ascii_lowercase().as_str() {
        "shell" | "commands" => PermissionKind::Shell,
        "write" => PermissionKind::Write,
        "read" => PermissionKind::Read,
        "url" => PermissionKind::Url,
        "mcp" => PermissionKind::Mcp,
        other => {
            let kinds = "shell, write, read, url, mcp";
            return Err(CopilotError::Failed(format!("{other:?} is not a kind of rule: use one of {kinds}")));
        }
    };
    Ok(PermissionRule { kind, argument: rule.argument.0 })
}

/// Allows everything of a kind, or not.
fn set_whole(rules: &mut Vec<PermissionRule>, kind: PermissionKind, allowed: Option<bool>) {
    let Some(allowed) = allowed else { return };
    let whole = PermissionRule { kind, argument: None };
    rules.retain(|rule| *rule != whole);
    if allowed {
        rules.push(whole);
    }
}
