//! `grove approve`, `grove deny` and `grove answer`

use anyhow::anyhow;
use grove_wire::ahp::{ChatInputRequest, ConfirmationOptionKind};
use serde_json::json;

use super::run::start;
use super::{Failure, errand, say};
use crate::ask::{self, names, with_option};
use crate::cli::{AnswerArgs, ApproveArgs, Common, DenyArgs, PermissionArgs, Protocol};
use crate::connect::{Reach, id_of};
use crate::follow::Output;
use crate::show::style::harmless;
use crate::talk::any::AnyTalk;
use crate::talk::{Deed, Permission, Talk, Verdict, Waiting};

pub(crate) fn approve(common: &Common, args: &ApproveArgs) -> Result<(), Failure> {
    decide(common, &args.permission, |permission| match &args.option {
        None => Ok(Verdict::new(true)),
        Some(wanted) => chosen(permission, wanted, true),
    })
}

pub(crate) fn deny(common: &Common, args: &DenyArgs) -> Result<(), Failure> {
    decide(common, &args.permission, |permission| {
        let verdict = match &args.option {
            None => Verdict::new(false),
            Some(wanted) => chosen(permission, wanted, false)?,
        };
        Ok(Verdict { reason: args.reason.clone(), ..verdict })
    })
}

/// The option of this id, where it says what the command does.
fn chosen(permission: &Permission, wanted: &str, approves: bool) -> Result<Verdict, Failure> {
    let option = permission.options.iter().find(|option| option.id == wanted);
    let option = option.ok_or_else(|| match permission.options.as_slice() {
        [] => Failure::NotFound(format!("{} has no options: leave out --option", permission.title)),
        options => Failure::NotFound(format!("there is no option {wanted:?}: there are {}", names(options))),
    })?;
    match (&option.kind, approves) {
        (ConfirmationOptionKind::Deny, true) => Err(anyhow!("{wanted:?} denies: use `grove deny`").into()),
        (ConfirmationOptionKind::Approve, false) => Err(anyhow!("{wanted:?} approves: use `grove approve`").into()),
        (ConfirmationOptionKind::Approve | ConfirmationOptionKind::Deny | ConfirmationOptionKind::Unknown(_), _) => {
            Ok(with_option(option))
        }
    }
}

/// Answers a permission.
fn decide(
    common: &Common,
    args: &PermissionArgs,
    verdict: impl FnOnce(&Permission) -> Result<Verdict, Failure>,
) -> Result<(), Failure> {
    let reach = Reach::new(common, &args.connect)?;
    errand()?.block_on(async {
        let (mut talk, _) = match &args.session {
            Some(session) => AnyTalk::join(&reach, args.connect.protocol, session, None, Output::Shown).await?,
            None => (the_one_that_waits(&reach, args.connect.protocol, Request::Permission).await?, None),
        };
        let permissions = talk.waiting().into_iter().filter_map(|waiting| match waiting {
            Waiting::Permission(permission) => Some(permission),
            Waiting::Questions { .. } | Waiting::Elsewhere { .. } => None,
        });
        let waiting: Vec<Waiting> = permissions.map(Waiting::Permission).collect();
        let Waiting::Permission(permission) = only(waiting, args.request.as_deref(), &talk, "permission")? else {
            return Err(anyhow!("nothing waits for a permission").into());
        };
        let verdict = verdict(&permission)?;
        let waiting = Waiting::Permission(permission.clone());
        let (request, approved) = (permission.request.clone(), verdict.approved);
        start(&mut talk, Deed::Permit { permission: Box::new(permission), verdict }).await?;
        if args.json {
            return Ok(say(json!({"session": talk.uri(), "request": request, "approved": approved}))?);
        }
        let decided = if approved { "approved" } else { "denied" };
        Ok(say(format!("{decided}: {}", harmless(&waiting.summary())))?)
    })
}

/// The kind of request that a command answers.
#[derive(Clone, Copy)]
enum Request {
    Permission,
    Question,
}

impl Request {
    const fn word(self) -> &'static str {
        match self {
            Request::Permission => "permission request",
            Request::Question => "question",
        }
    }

    fn is(self, waiting: &Waiting) -> bool {
        match self {
            Request::Permission => matches!(waiting, Waiting::Permission(_)),
            Request::Question => matches!(waiting, Waiting::Questions { .. }),
        }
    }
}

/// The only session of any host in which such a request waits.
async fn the_one_that_waits(reach: &Reach, protocol: Protocol, request: Request) -> Result<AnyTalk, Failure> {
    if protocol == Protocol::V1 {
        return Err(anyhow!("version 1 does not say which sessions wait: name one, or leave out --protocol v1").into());
    }
    let mut found = Vec::new();
    for name in reach.waiting_sessions().await? {
        let (talk, _) = AnyTalk::join(reach, protocol, &name, None, Output::Shown).await?;
        let waiting: Vec<Waiting> = talk.waiting().into_iter().filter(|waiting| request.is(waiting)).collect();
        if !waiting.is_empty() {
            found.push((name, talk, waiting));
        }
    }
    let word = request.word();
    match (found.pop(), found.len()) {
        (None, _) => Err(Failure::NotFound(format!(
            "no {word} waits in any session: `grove ls --waiting` lists those that wait for an answer"
        ))),
        (Some((_, talk, _)), 0) => Ok(talk),
        (Some(last), others) => {
            found.push(last);
            let line = |name: &str, waiting: &Waiting| format!("  {name}  {}", harmless(&waiting.summary()));
            let lines = found.iter().flat_map(|(name, _, all)| all.iter().map(move |waiting| line(name, waiting)));
            let lines: Vec<String> = lines.collect();
            let lines = lines.join("\n");
            Err(anyhow!("{word}s wait in {} sessions: name the session\n{lines}", others + 1).into())
        }
    }
}

/// The one that waits, or the one that is named.
fn only(mut waiting: Vec<Waiting>, named: Option<&str>, talk: &impl Talk, what: &str) -> Result<Waiting, Failure> {
    let id = id_of(talk.uri());
    if let Some(named) = named {
        let at = waiting.iter().position(|waiting| waiting.id() == named);
        let missing = || Failure::NotFound(format!("no {what} {named:?} waits in {id}"));
        return at.map(|at| waiting.swap_remove(at)).ok_or_else(missing);
    }
    match (waiting.pop(), waiting.len()) {
        (Some(only), 0) => Ok(only),
        (None, _) => Err(Failure::NotFound(format!("no {what} waits in {id}"))),
        (Some(last), others) => {
            waiting.push(last);
            let list: Vec<String> =
                waiting.iter().map(|waiting| format!("  {}  {}", waiting.id(), harmless(&waiting.summary()))).collect();
            let list = list.join("\n");
            Err(anyhow!("{} {what}s wait in {id}: say which one behind the session\n{list}", others + 1).into())
        }
    }
}

pub(crate) fn answer(common: &Common, args: &AnswerArgs) -> Result<(), Failure> {
    let reach = Reach::new(common, &args.connect)?;
    errand()?.block_on(async {
        let (protocol, texts) = (args.connect.protocol, &args.text);
        if protocol == Protocol::V1 {
            return Err(anyhow!("version 1 has no questions: leave out --protocol v1").into());
        }
        let (mut talk, texts) = match &args.session {
            // One word alone is the answer, not the session.
            Some(text) if texts.is_empty() && !args.decline => {
                must_be_an_answer(&reach, text).await?;
                (the_one_that_waits(&reach, protocol, Request::Question).await?, std::slice::from_ref(text))
            }
            Some(session) => (AnyTalk::join(&reach, protocol, session, None, Output::Shown).await?.0, texts.as_slice()),
            None => (the_one_that_waits(&reach, protocol, Request::Question).await?, texts.as_slice()),
        };
        let waiting = talk.waiting().into_iter().filter(|waiting| matches!(waiting, Waiting::Questions { .. }));
        let waiting = only(waiting.collect(), args.request.as_deref(), &talk, "question")?;
        let Waiting::Questions { chat, request } = waiting else {
            return Err(anyhow!("nothing waits for an answer").into());
        };
        let answers = if args.decline { None } else { Some(answers(&request, texts)?) };
        let id = request.id.clone();
        start(&mut talk, Deed::Answer { chat, request: id.clone(), answers }).await?;
        if args.json {
            return Ok(say(json!({"session": talk.uri(), "request": id, "answered": !args.decline}))?);
        }
        Ok(say(if args.decline { "declined" } else { "answered" })?)
    })
}

/// How short a word may be that is taken for the beginning of a session's id. A shorter one may be an option's number.
const SHORTEST_ID: usize = 4;

/// Refuses a single word that names a session: its answer was forgotten, and nobody wants the name to be the answer.
async fn must_be_an_answer(reach: &Reach, word: &str) -> Result<(), Failure> {
    if word.chars().count() < SHORTEST_ID {
        return Ok(());
    }
    match AnyTalk::join(reach, Protocol::Ahp, word, None, Output::Shown).await {
        Ok((talk, _)) => {
            let id = id_of(talk.uri());
            Err(anyhow!("{word:?} is a session, and no answer is given: `grove answer {id} TEXT` answers it").into())
        }
        Err(Failure::NotFound(_)) => Ok(()),
        Err(failure) => Err(failure),
    }
}

type Answers = Vec<(String, grove_wire::ahp::ChatInputAnswer)>;

/// A text for each question, in their order.
fn answers(request: &ChatInputRequest, texts: &[String]) -> Result<Answers, Failure> {
    let questions = request.questions.as_deref().unwrap_or_default();
    if questions.len() != texts.len() {
        let list: Vec<String> = questions.iter().map(|question| format!("  {}", ask::wording(question))).collect();
        let (wanted, given, list) = (questions.len(), texts.len(), harmless(&list.join("\n")));
        return Err(anyhow!("{wanted} answers are wanted, one text for each, and {given} are given:\n{list}").into());
    }
    let answer = |(question, text): (_, &String)| {
        let answer = ask::answer(question, text).map_err(|why| anyhow!("{}: {why}", ask::wording(question)))?;
        Ok((ask::id(question).to_owned(), answer))
    };
    questions.iter().zip(texts).map(answer).collect()
}
