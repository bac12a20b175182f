//! Summaries without a model: one line for each message of the user. Instructions that are a script are run instead,
//! and the text that it says is the summary. So tests can have summaries that take long, fail or never end.

use async_trait::async_trait;

use super::script::{Script, ScriptStep};
use crate::agent::{AgentError, Summarizer, SummaryRequest};

/// The characters of each message that are shown.
const LINE: usize = 200;
/// The number of messages that are shown: the newest.
const LINES: usize = 50;

pub(super) struct ScriptedSummarizer;

#[async_trait]
impl Summarizer for ScriptedSummarizer {
    async fn summarize(&self, wanted: SummaryRequest) -> Result<String, AgentError> {
        match wanted.instructions.as_deref().and_then(|text| text.strip_prefix("script:")) {
            Some(steps) => run(steps.parse()?).await,
            None => Ok(what_was_said(&wanted.prompt)),
        }
    }
}

async fn run(script: Script) -> Result<String, AgentError> {
    let mut summary = String::new();
    for step in script.steps {
        match step {
            ScriptStep::Say(say) => summary.push_str(&say.text),
            ScriptStep::Sleep(time) => tokio::time::sleep(time).await,
            ScriptStep::Hang => std::future::pending().await,
            ScriptStep::Fail(why) => return Err(AgentError::TurnFailed(why)),
            _ => return Err(AgentError::Script("a summary is made of `say`, `sleep`, `hang` and `fail`".to_owned())),
        }
    }
    Ok(summary)
}

/// The user's messages in a plain-text conversation.
fn what_was_said(prompt: &str) -> String {
    let conversation = prompt.rsplit_once("<conversation>").map_or(prompt, |(_, rest)| rest);
    let mut lines = conversation.lines();
    let mut sentences = Vec::new();
    while let Some(line) = lines.next() {
        if line == "User:"
            && let Some(words) = lines.next()
        {
            sentences.push(format!("- {}", &words[..words.floor_char_boundary(LINE)]));
        }
    }
    if sentences.is_empty() {
        return "The person said nothing.".to_owned();
    }
    let first = sentences.len().saturating_sub(LINES);
    format!("The person said:\n{}", sentences[first..].join("\n"))
}

#[cfg(test)]
mod tests {
    use grove_core::Extra;

    use super::*;

    fn request(prompt: &str, instructions: Option<&str>) -> SummaryRequest {
        SummaryRequest {
            prompt: prompt.to_owned(),
            instructions: instructions.map(str::to_owned),
            model: None,
            working_directories: Vec::new(),
            settings: Extra::new(),
        }
    }

    #[tokio::test]
    async fn a_summary_without_a_script_is_never_empty() {
        let summary = ScriptedSummarizer.summarize(request("<conversation>\nAssistant:\nhm\n", None)).await.unwrap();
        assert_eq!(summary, "The person said nothing.");
    }

    #[tokio::test]
    async fn a_summary_without_a_script_is_what_the_person_said() {
        let prompt = "Do it.\n<conversation>\nUser:\none\n\nAssistant:\ntwo\n\nUser:\nthree\nmore\n</conversation>\n";
        let summary = ScriptedSummarizer.summarize(request(prompt, None)).await.unwrap();
        assert_eq!(summary, "The person said:\n- one\n- three");
    }

    #[tokio::test(start_paused = true)]
    async fn a_script_says_waits_and_fails() {
        let script = r#"script:[{"sleepMs": 10000}, {"say": "short"}]"#;
        assert_eq!(ScriptedSummarizer.summarize(request("", Some(script))).await.unwrap(), "short");
        let fails = r#"script:[{"fail": "no room"}]"#;
        let error = ScriptedSummarizer.summarize(request("", Some(fails))).await.unwrap_err();
        assert!(error.to_string().contains("no room"), "{error}");
        let tool = r#"script:[{"title": "x"}]"#;
        assert!(ScriptedSummarizer.summarize(request("", Some(tool))).await.is_err());
    }
}
