//! The security checks by name, so that a test can prove that each of them is needed.
//!
//! A check in the code asks [`Check::is_enforced`] first. In every ordinary build that is the constant `true`. In a build
//! with `--cfg grove_checks`, the variable `GROVE_CHECK_OFF` names one check that is skipped. The test that the check
//! is for must fail then; `make test-checks` runs it for each check.
//!
//! ```
//! use grove_checks::Check;
//!
//! fn is_refused(host_header_is_ours: bool) -> bool {
//!     Check::HostHeader.is_enforced() && !host_header_is_ours
//! }
//! assert!(is_refused(false));
//! ```

/// The program that runs a check's test.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TestSuite {
    /// The unit tests of a package, or its test program `it`.
    Package(&'static str),
    /// The unit tests of the page, in `web`.
    Page,
}

/// Defines the checks: a variant, its name, the suite of its test, and the test that fails without it.
macro_rules! checks {
    ($($(#[$doc:meta])* $variant:ident = $name:literal, $suite:expr, $test:literal;)*) => {
        /// A security check.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Check {
            $($(#[$doc])* $variant,)*
        }

        impl Check {
            /// Every check.
            pub const ALL: &[Check] = &[$(Check::$variant,)*];

            /// The name, as the value of `GROVE_CHECK_OFF`.
            pub const fn name(self) -> &'static str {
                match self { $(Check::$variant => $name,)* }
            }

            /// The test that fails without the check, and its suite.
            pub const fn test(self) -> (TestSuite, &'static str) {
                match self { $(Check::$variant => ($suite, $test),)* }
            }
        }
    };
}

const AGENTS: TestSuite = TestSuite::Package("grove-agents");
const CLIENT: TestSuite = TestSuite::Package("grove-client");
const CORE: TestSuite = TestSuite::Package("grove-core");
const FRAMES: TestSuite = TestSuite::Package("grove-frames");
const FS: TestSuite = TestSuite::Package("grove-fs");
const GROVE: TestSuite = TestSuite::Package("grove");
const PAGE: TestSuite = TestSuite::Page;
const HOST: TestSuite = TestSuite::Package("grove-host");
const NOTIFY: TestSuite = TestSuite::Package("grove-notify");
const SERVER: TestSuite = TestSuite::Package("grove-server");
const SHIM: TestSuite = TestSuite::Package("grove-shim");
const WIRE: TestSuite = TestSuite::Package("grove-wire");
const WORK: TestSuite = TestSuite::Package("grove-work");

checks! {
    /// A request names this host in its `Host` header.
    HostHeader = "host-header", SERVER, "exactly_one_host_header_and_it_is_ours";
    /// A browser's request comes from a page of this host.
    Origin = "origin", SERVER, "a_foreign_origin_is_refused_and_none_is_fine";
    /// A browser's request that changes something comes from the same site.
    FetchSite = "fetch-site", SERVER, "a_page_of_another_site_or_port_may_only_follow_a_link";
    /// The length of a request is given by `Content-Length` alone.
    TransferEncoding = "transfer-encoding", SERVER, "a_request_whose_end_is_not_certain_is_refused_and_its_connection_closed";
    /// A request has one `Content-Length`.
    LengthCount = "length-count", SERVER, "a_request_has_one_length_and_an_upgrade_has_no_body";
    /// An upgrade request has no body.
    UpgradeBody = "upgrade-body", SERVER, "a_request_whose_end_is_not_certain_is_refused_and_its_connection_closed";
    /// The head of a request is short.
    HeadSize = "head-size", GROVE, "a_head_that_is_too_large_or_no_http_is_refused";
    /// Every answer restricts what a page may do in a browser.
    PageHeaders = "page-headers", SERVER, "every_answer_tells_a_browser_to_be_strict";
    /// A connection over a network gives the token.
    Token = "token", SERVER, "the_token_comes_as_bearer_or_in_the_query";
    /// A token without the scope of a method or action is refused.
    Scopes = "scopes", SERVER, "a_request_without_its_scope_is_refused_and_says_what_to_do";
    /// Wrong tokens are answered later and later.
    WrongTokenDelay = "wrong-token-delay", SERVER, "wrong_tokens_are_answered_ever_later_and_right_ones_at_once";
    /// A ticket or a challenge is used once.
    TicketOnce = "ticket-once", SERVER, "an_answer_opens_one_socket_once_and_a_wrong_one_none";
    /// A ticket expires.
    TicketAge = "ticket-age", SERVER, "a_ticket_that_is_too_old_is_no_good";
    /// The number of unused tickets is bounded.
    TicketCount = "ticket-count", SERVER, "of_too_many_tickets_the_oldest_go";
    /// A page that answers a challenge knows the token.
    PageAnswer = "page-answer", SERVER, "an_answer_opens_one_socket_once_and_a_wrong_one_none";
    /// A listener for other machines proves nothing under a loopback name.
    LoopbackProof = "loopback-proof", SERVER, "a_page_key_is_for_the_origin_that_is_asked_for_and_no_other_listener_gives_one_for_loopback";
    /// The rate of proofs is bounded.
    ProofRate = "proof-rate", SERVER, "proofs_are_bounded_in_number_and_come_back_with_time";
    /// The number of connections without a token is bounded.
    PendingConnections = "pending-connections", SERVER, "strangers_who_say_nothing_keep_nobody_out_and_give_way_to_the_next";
    /// One token has a part of all connections.
    TokenConnections = "token-connections", SERVER, "one_token_cannot_take_all_places_and_nobody_can_take_the_owners";
    /// A message of a client has a largest size.
    MessageSize = "message-size", GROVE, "a_message_that_is_too_large_closes_its_own_connection_with_1009";
    /// A client that sends too large messages does not return at once.
    OversizeDelay = "oversize-delay", SERVER, "a_connection_with_too_large_a_message_is_closed_after_a_second";
    /// A message is not nested deeply.
    JsonDepth = "json-depth", WIRE, "depth_is_bounded_and_brackets_in_strings_do_not_count";
    /// A client that reads too slowly is disconnected.
    QueueSize = "queue-size", SERVER, "past_the_bound_the_connection_is_closed_and_reconnecting_brings_everything";
    /// Other machines are served with TLS, or with an explicit flag.
    ListenWithTls = "listen-with-tls", GROVE, "other_machines_are_served_with_tls_or_where_somebody_wants_it_without";
    /// The port for the Copilot SDK is on loopback.
    CopilotLoopback = "copilot-loopback", GROVE, "other_machines_are_served_with_tls_or_where_somebody_wants_it_without";
    /// A client of the Copilot SDK's port gives its secret.
    CopilotSecret = "copilot-secret", SERVER, "every_endpoint_at_an_address_requires_a_secret";
    /// A program that opens a port for SDKs sets a secret.
    CarrierSecret = "carrier-secret", SERVER, "a_program_that_carries_a_port_must_name_its_secret";
    /// The Unix socket is used by processes of its owner.
    SocketUser = "socket-user", SERVER, "another_user_may_not_use_the_socket";
    /// The Unix socket can be opened by its owner alone.
    SocketMode = "socket-mode", SERVER, "the_socket_can_be_opened_by_its_owner_alone";
    /// A hook's token gives access to its chat's tree alone.
    LeaseMethods = "lease-methods", SERVER, "a_hooks_token_opens_the_tree_of_its_chat_and_nothing_else";
    /// A hook's token ends with the hook.
    LeaseEnd = "lease-end", GROVE, "a_program_does_the_same_with_a_token_that_opens_one_chat_and_ends_with_it";
    /// A client's tool call is completed by that client.
    ToolOwner = "tool-owner", CORE, "a_client_runs_only_its_own_calls_and_only_while_they_run";
    /// A visible file is below one of the roots, with all links followed.
    Roots = "roots", WORK, "neither_dots_nor_links_lead_out_of_a_root";
    /// Grove's own files are not visible.
    PrivateFiles = "private-files", WORK, "what_is_private_is_silent_even_when_it_is_made_later";
    /// Files of `/proc` are not visible.
    ProcessFiles = "process-files", WORK, "files_that_describe_processes_are_never_shown";
    /// Hard links to Grove's own files are not visible.
    HardLinks = "hard-links", WORK, "a_hard_link_to_a_private_file_is_private_and_other_hard_links_are_not";
    /// Grove's own folders are not visible under a second mount.
    SecondMount = "second-mount", WORK, "a_private_folder_is_known_by_its_number_under_any_name";
    /// The existence of a file outside the roots is not revealed.
    HiddenExistence = "hidden-existence", WORK, "what_is_missing_is_said_only_where_the_nearest_folder_above_may_be_seen";
    /// A broken link does not reveal what is missing outside the roots.
    BrokenLinks = "broken-links", WORK, "a_link_that_leads_nowhere_does_not_tell_what_is_missing_outside";
    /// A started program inherits no secret of the host's environment.
    Environment = "environment", WORK, "secrets_in_our_environment_are_not_handed_on";
    /// Links in folders that agents write to are not followed.
    Links = "links", FS, "a_link_to_a_file_is_not_followed";
    /// A name of a workspace file leads to no folder above.
    Dots = "dots", FS, "each_class_of_bad_name_has_its_own_error";
    /// A person approves writes to files that run programs.
    ProtectedFiles = "protected-files", WORK, "names_are_guarded_in_any_case_and_only_below_the_working_directory";
    /// Clients change files in working directories of sessions alone.
    ChangeFolders = "change-folders", WORK, "only_working_directories_are_changed_and_nothing_outside_is_revealed";
    /// A client changes only the paths that it asked for.
    ChangeGrants = "change-grants", WORK, "a_path_is_changed_only_after_it_was_granted";
    /// A change follows no link that was put in its way.
    ChangeLinks = "change-links", WORK, "a_folder_is_opened_part_by_part_and_a_link_on_the_way_is_not_followed";
    /// Working directories, roots, private folders and what is above them are not deleted or moved.
    ChangeLandmarks = "change-landmarks", WORK, "roots_private_folders_and_what_is_above_them_stay_in_their_place";
    /// A change of a folder is bounded.
    ChangeSize = "change-size", WORK, "a_folder_that_is_too_deep_or_too_large_is_not_changed_at_all";
    /// A connection has a bounded number of terminals.
    TerminalCount = "terminal-count", SERVER, "terminals_are_bounded_for_each_connection";
    /// A client uses the terminals that it has claimed.
    TerminalClaim = "terminal-claim", SERVER, "only_the_client_that_claims_a_terminal_types_on_it";
    /// A denial never chooses an option that allows.
    OptionDecision = "option-decision", AGENTS, "a_verdict_without_a_fitting_option_cancels";
    /// A tool's name in a question is one line.
    ToolName = "tool-name", AGENTS, "a_tools_name_and_its_options_are_one_line_and_change_no_other_text";
    /// An option's label in a question is one line.
    OptionLabel = "option-label", AGENTS, "a_tools_name_and_its_options_are_one_line_and_change_no_other_text";
    /// Text of agents has no control characters.
    ControlCharacters = "control-characters", CORE, "a_title_is_one_trimmed_line_without_control_characters";
    /// Text of agents does not change the direction of other text.
    TextDirection = "text-direction", CORE, "a_title_is_one_trimmed_line_without_control_characters";
    /// A name on a terminal is one line.
    OneLine = "one-line", GROVE, "a_log_of_somebody_else_cannot_steer_the_terminal_nor_forge_a_line";
    /// Output for programs cannot control a terminal.
    EscapedOutput = "escaped-output", GROVE, "a_line_of_json_stays_the_same_value_and_cannot_steer_the_terminal";
    /// Logs of frames hold no values of members that are secrets.
    RedactedNames = "redacted-names", SERVER, "secrets_are_taken_out_at_any_depth";
    /// Logs of frames hold no environment.
    RedactedEnvironment = "redacted-environment", SERVER, "secrets_are_taken_out_at_any_depth";
    /// Logs of frames hold no secret inside of text.
    RedactedMarks = "redacted-marks", SERVER, "secrets_are_taken_out_at_any_depth";
    /// Logs of frames hold no known secret.
    RedactedValues = "redacted-values", AGENTS, "secrets_are_taken_out_at_any_depth";
    /// A log of frames can be read by its owner alone.
    FrameLogMode = "frame-log-mode", FRAMES, "frames_without_room_are_counted_and_the_file_is_its_owners_alone";
    /// A file with a secret belongs to the user.
    SecretOwner = "secret-owner", GROVE, "a_folder_that_others_may_write_to_or_that_belongs_to_another_is_refused";
    /// Others cannot write to a file with a secret.
    SecretWriters = "secret-writers", GROVE, "a_secret_is_read_without_following_a_link_and_not_where_others_may_write";
    /// A catalog or program is downloaded with TLS, or from this machine.
    DownloadAddress = "download-address", GROVE, "a_catalog_comes_from_a_file_or_a_safe_address_alone";
    /// A download has the required checksum.
    DownloadChecksum = "download-checksum", GROVE, "a_catalog_with_another_checksum_changes_nothing";
    /// Others cannot read a file with a secret.
    SecretReaders = "secret-readers", GROVE, "a_secret_is_read_without_following_a_link_and_not_where_others_may_write";
    /// A file with a secret is no link.
    SecretLinks = "secret-links", GROVE, "a_secret_is_read_without_following_a_link_and_not_where_others_may_write";
    /// Others cannot write to a key or configuration file that the user names.
    NamedSecretWriters = "named-secret-writers", GROVE, "a_tls_key_that_others_may_write_to_or_that_belongs_to_another_is_refused";
    /// The folder of a shim can be entered by its owner alone.
    ShimFolder = "shim-folder", SHIM, "a_folder_that_others_may_enter_is_refused_and_a_new_one_is_private";
    /// The tools of clients are served to those alone who know their secret.
    ToolsSecret = "tools-secret", AGENTS, "who_does_not_know_the_secret_gets_no_tools";
    /// MCP servers, which are programs, are configured by those alone who may approve.
    McpServers = "mcp-servers", SERVER, "a_token_without_approve_configures_no_mcp_server";
    /// A path with `..` is not trusted by its beginning.
    TrustedPath = "trusted-path", GROVE, "a_trusted_folder_stays_trusted_with_what_is_below_it_and_nothing_beside_it";
    /// The certificate of a remote host is the pinned one.
    Pin = "pin", CLIENT, "a_certificate_that_is_not_pinned_is_refused_and_shown";
    /// A person is warned before a token is sent unencrypted.
    PlainAddress = "plain-address", CLIENT, "what_is_neither_encrypted_nor_stays_on_this_machine_can_be_read_by_others";
    /// An address of a host is no option of SSH.
    SshOptions = "ssh-options", CLIENT, "what_is_no_address_is_refused_and_what_would_be_an_option_as_well";
    /// A line of a remote host has a largest size.
    LineLength = "line-length", CLIENT, "a_line_that_is_too_long_ends_the_connection";
    /// A client does not wait for ever for an answer.
    AnswerTime = "answer-time", CLIENT, "what_the_host_never_answers_ends_in_time";
    /// A client does not wait for ever for a silent host.
    HostSilence = "host-silence", CLIENT, "a_host_that_falls_silent_is_given_up_for_lost";
    /// A client reads no endless list.
    ListPages = "list-pages", CLIENT, "a_list_that_never_ends_is_given_up";
    /// The page survives an address that cannot be decoded.
    PageAddress = "page-address", PAGE, "an address that cannot be read leads home";
    /// The page shows control characters of agents as escapes.
    PageText = "page-text", PAGE, "is shown with escapes, and other text as it is";
    /// The page shows HTML of agents as text.
    PageMarkdown = "page-markdown", PAGE, "shows HTML as it was written";
    /// A connection beyond its rates and its token's pool waits.
    Rates = "rates", HOST, "a_connection_beyond_its_rate_uses_the_pool_of_its_token_and_then_waits";
    /// A connection that has not authenticated uses nothing of the host's token.
    AddressUsage = "address-usage", HOST, "a_connection_counts_for_its_address_until_it_logs_in";
    /// The connections of a token have a bounded number of subscriptions.
    TokenSubscriptions = "token-subscriptions", HOST, "subscriptions_are_counted_by_token_until_they_end";
    /// The connections of a token have a bounded number of unanswered requests.
    OpenRequests = "open-requests", HOST, "unanswered_requests_are_counted_by_token";
    /// A connection and a token have a bounded number of expensive calls.
    LargeCalls = "large-calls", HOST, "large_calls_are_counted_by_connection_and_by_token";
    /// A request to a listener for other machines uses a name of this host.
    HostNames = "host-names", SERVER, "other_machines_use_the_names_of_the_host_and_no_other_page_comes_in";
    /// A request that may change something has a JSON content type.
    ContentType = "content-type", SERVER, "a_request_that_may_change_something_has_a_json_content_type";
    /// A token in the address is refused on listeners for other machines.
    QueryToken = "query-token", SERVER, "a_token_in_the_address_is_for_loopback_or_for_who_permits_it";
    /// A one-time code is used up by its first use.
    OneTimeCode = "one-time-code", SERVER, "a_code_is_good_once_for_a_token_that_can_be_revoked";
    /// An expired token opens nothing.
    TokenExpiry = "token-expiry", SERVER, "an_expired_token_opens_nothing_and_its_connections_are_closed";
    /// A new token has no scope that its maker lacks.
    TokenMaker = "token-maker", SERVER, "tokens_are_managed_by_clients_with_admin_who_give_away_nothing_that_they_lack";
    /// A token that another one makes or rotates ends with that one at the latest.
    MakerExpiry = "maker-expiry", SERVER, "a_token_does_not_outlive_the_one_that_makes_or_rotates_it";
    /// A client's id is claimed where its owner is checked.
    ClientClaim = "client-claim", SERVER, "of_two_tokens_that_use_a_client_id_at_the_same_time_one_gets_it";
    /// A client's id belongs to the token that first used it.
    ClientId = "client-id", SERVER, "a_client_id_belongs_to_the_token_that_first_used_it";
    /// A token without the scope `folders` stays inside the configured roots.
    Folders = "folders", SERVER, "a_token_without_folders_stays_inside_the_roots";
    /// A client without the scope `folders` is offered folders inside the configured roots alone.
    BrowseFolders = "browse-folders", GROVE, "a_token_without_folders_browses_inside_the_roots";
    /// A process of an agent does nothing that persons alone may do.
    AgentProcess = "agent-process", GROVE, "an_agent_cannot_approve_its_own_requests";
    /// A message of the host goes to machines of the internet alone.
    PushAddress = "push-address", NOTIFY, "a_device_cannot_make_the_host_reach_into_its_own_network";
    /// A message to a device contains no more than the owner of the host allows.
    NoticeDetail = "notice-detail", NOTIFY, "a_message_contains_no_more_than_the_detail_allows";
    /// A device is told as long as its token may read.
    DeviceToken = "device-token", NOTIFY, "a_device_is_told_until_its_token_ends";
}

impl Check {
    /// Says whether the check is made, which only a build for testing the tests can change.
    #[cfg(not(grove_checks))]
    #[inline]
    pub const fn is_enforced(self) -> bool {
        true
    }

    /// Says whether the check is made.
    #[cfg(grove_checks)]
    pub fn is_enforced(self) -> bool {
        std::env::var("GROVE_CHECK_OFF").as_deref() != Ok(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_check_has_a_name_of_its_own_and_a_test() {
        for (place, check) in Check::ALL.iter().enumerate() {
            assert!(Check::ALL[..place].iter().all(|other| other.name() != check.name()), "{check:?}");
            assert!(!check.test().1.is_empty(), "{check:?}");
        }
    }
}
