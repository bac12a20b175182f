//! The limits of the program, compared with the table of limits (`crates/limits/src/table/program.rs`).

use std::collections::BTreeMap;
use std::time::Duration;

use grove_limits::LimitValue;

#[test]
fn the_table_of_limits_has_the_values_of_the_program() {
    let values = BTreeMap::from([
        ("audit-files", LimitValue::Count(crate::audit::FILES as u64)),
        ("audit-file", LimitValue::Bytes(crate::audit::FILE_BYTES)),
        ("audit-line", LimitValue::Bytes(crate::audit::reader::MAX_LINE)),
        ("audit-queue", LimitValue::Count(crate::audit::writer::MAX_QUEUED as u64)),
        ("host-log", LimitValue::Bytes(crate::background::LOG_BYTES)),
        ("damage-file", LimitValue::Bytes(crate::damage_file::MAX_BYTES)),
        ("secret-file", LimitValue::Bytes(crate::secret_files::MAX_BYTES)),
        ("exported-spans", LimitValue::Count(crate::telemetry::spans::QUEUE as u64)),
        ("export-time", LimitValue::Time(crate::telemetry::TIMEOUT)),
        ("agents", LimitValue::Count(crate::settings::MAX_AGENTS.get() as u64)),
        ("agent-idle", LimitValue::Time(Duration::from_secs(crate::settings::AGENT_IDLE))),
        ("agent-start", LimitValue::Time(Duration::from_secs(crate::settings::AGENT_START.get()))),
        ("agent-cancel", LimitValue::Time(Duration::from_secs(crate::settings::AGENT_CANCEL.get()))),
        ("agent-answer", LimitValue::Time(crate::agents::backends::TIMEOUT)),
        ("catalog-download", LimitValue::Time(crate::commands::agents::update::DOWNLOAD_TIME)),
        ("installed-program", LimitValue::Bytes(crate::agents::install::run::PROGRAM_BYTES)),
        ("install-step", LimitValue::Time(crate::agents::install::run::STEP_TIME)),
        ("install-lines", LimitValue::Count(crate::administration::installation::MAX_LINES as u64)),
        ("agent-starts", LimitValue::Count(crate::administration::agents::STARTS as u64)),
        ("administration-id", LimitValue::Bytes(crate::administration::agents::MAX_ID as u64)),
        ("checked-hosts", LimitValue::Count(crate::administration::hosts::ASKED_AT_ONCE as u64)),
        ("added-address", LimitValue::Bytes(crate::administration::hosts::MAX_ADDRESS as u64)),
        ("added-token", LimitValue::Bytes(crate::administration::hosts::MAX_TOKEN as u64)),
        ("rules-text", LimitValue::Bytes(crate::administration::rules::MAX_RULES_TEXT as u64)),
        ("judged-request", LimitValue::Bytes(crate::administration::rules::MAX_SUBJECT as u64)),
        ("replay-differences", LimitValue::Count(crate::administration::rules::MAX_DIFFERENCES as u64)),
        ("replay-page", LimitValue::Count(crate::administration::rules::MAX_PAGE as u64)),
        ("suggested-rules", LimitValue::Count(crate::administration::rules::MAX_SUGGESTIONS as u64)),
        ("agent-name", LimitValue::Bytes(crate::agents::config_table::NAME_BYTES as u64)),
        ("idle-exit", LimitValue::Time(Duration::from_secs(crate::settings::IDLE_EXIT))),
        ("hook-time", LimitValue::Time(Duration::from_secs(crate::hooks::config_table::LONGEST))),
        ("hook-answer", LimitValue::Bytes(crate::hooks::ANSWER as u64)),
        ("hook-stderr", LimitValue::Bytes(crate::hooks::COMPLAINT as u64)),
        ("hosts", LimitValue::Count(crate::hosts::file::MAX_HOSTS as u64)),
        ("host-name", LimitValue::Bytes(crate::hosts::NAME as u64)),
        ("host-cache", LimitValue::Bytes(crate::hosts::session_cache::MAX_BYTES as u64)),
        ("known-stores", LimitValue::Count(crate::stores::MAX_REMEMBERED as u64)),
        ("trusted-folders", LimitValue::Count(crate::trust::MAX_FOLDERS as u64)),
        ("trusted-policies", LimitValue::Count(crate::policy_files::MAX_TRUSTED as u64)),
        ("cached-policies", LimitValue::Count(crate::policy_files::MAX_CACHED as u64)),
        ("history-readings", LimitValue::Count(crate::history::stores::MAX_READINGS as u64)),
        ("history-subagents", LimitValue::Count(crate::history::transcript::MAX_SUBAGENTS as u64)),
    ]);
    let table = grove_limits::table();
    let program = table.iter().find(|group| group.subject == "The program").unwrap();
    let rows: BTreeMap<_, _> = program.limits.iter().map(|limit| (limit.name, limit.value)).collect();
    assert_eq!(rows, values);
}
