//! The todo list of a session, in its database.
//!
//! The tables are those of the Copilot CLI, so that its sessions and ours can be opened by both.

use std::collections::BTreeMap;

use super::database::{Cell, Database, DatabaseError, QueryRows, Statement};

const TABLES: &str = "
    CREATE TABLE IF NOT EXISTS todos (
        id TEXT PRIMARY KEY,
        title TEXT NOT NULL,
        description TEXT,
        status TEXT DEFAULT 'pending' CHECK(status IN ('pending', 'in_progress', 'done', 'blocked')),
        created_at TEXT DEFAULT (datetime('now')),
        updated_at TEXT DEFAULT (datetime('now'))
    );
    CREATE TABLE IF NOT EXISTS todo_deps (
        todo_id TEXT NOT NULL,
        depends_on TEXT NOT NULL,
        PRIMARY KEY (todo_id, depends_on),
        FOREIGN KEY (todo_id) REFERENCES todos(id),
        FOREIGN KEY (depends_on) REFERENCES todos(id)
    );";

/// The prefix of the ids of a plan's entries.
const PLAN: &str = "plan-";
/// The most entries of a plan that are kept.
pub const MAX_PLAN: usize = 1_000;
/// The characters of an entry's title that are kept.
pub const MAX_TITLE: usize = 4_096;

/// The todo list of a session.
#[derive(Clone, Copy, Debug)]
pub struct Todos<'a> {
    database: &'a dyn Database,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Todo {
    pub id: String,
    pub title: String,
    pub description: Option<String>,
    pub status: TodoStatus,
    /// The ids of its dependencies, sorted.
    pub depends_on: Vec<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TodoStatus {
    Pending,
    InProgress,
    Done,
    Blocked,
}

impl TodoStatus {
    const ALL: [TodoStatus; 4] = [TodoStatus::Pending, TodoStatus::InProgress, TodoStatus::Done, TodoStatus::Blocked];

    pub fn name(self) -> &'static str {
        match self {
            TodoStatus::Pending => "pending",
            TodoStatus::InProgress => "in_progress",
            TodoStatus::Done => "done",
            TodoStatus::Blocked => "blocked",
        }
    }
}

impl<'a> Todos<'a> {
    pub fn of(database: &'a dyn Database) -> Self {
        Self { database }
    }

    /// Everything on the list, in insertion order. Reading creates no database.
    pub async fn list(&self) -> Result<Vec<Todo>, DatabaseError> {
        if !self.database.exists().await? {
            return Ok(Vec::new());
        }
        let rows = self
            .database
            .transaction(vec![
                Statement::exec(TABLES),
                Statement::query("SELECT id, title, description, status FROM todos ORDER BY rowid"),
                Statement::query("SELECT todo_id, depends_on FROM todo_deps ORDER BY todo_id, depends_on"),
            ])
            .await?;
        let [_, todos, dependencies] = rows.as_slice() else { return Ok(Vec::new()) };
        let mut list: Vec<Todo> = todos.rows.iter().map(|row| todo(row)).collect::<Result<_, _>>()?;
        let places: BTreeMap<String, usize> = list.iter().enumerate().map(|(at, todo)| (todo.id.clone(), at)).collect();
        for (id, other) in pairs(dependencies) {
            if let Some(todo) = places.get(id).and_then(|at| list.get_mut(*at)) {
                todo.depends_on.push(other.to_owned());
            }
        }
        Ok(list)
    }

    /// Adds an entry to the list, or replaces the one with its id.
    pub async fn put(&self, todo: &Todo) -> Result<(), DatabaseError> {
        let mut statements = vec![
            Statement::exec(TABLES),
            Statement::run(
                "INSERT INTO todos (id, title, description, status) VALUES (:id, :title, :description, :status)
                 ON CONFLICT (id) DO UPDATE SET title = excluded.title, description = excluded.description,
                     status = excluded.status, updated_at = datetime('now')",
            )
            .with("id", todo.id.as_str())
            .with("title", todo.title.as_str())
            .with("description", todo.description.as_deref())
            .with("status", todo.status.name()),
            Statement::run("DELETE FROM todo_deps WHERE todo_id = :id").with("id", todo.id.as_str()),
        ];
        statements.extend(todo.depends_on.iter().map(|other| {
            Statement::run("INSERT OR IGNORE INTO todo_deps (todo_id, depends_on) VALUES (:id, :other)")
                .with("id", todo.id.as_str())
                .with("other", other.as_str())
        }));
        self.database.transaction(statements).await.map(|_| ())
    }

    /// Replaces the agent's previous plan by this one. Entries of others stay.
    ///
    /// A plan has no ids of its own, so each entry is identified by its position. Entries past 1,000 are left out, and
    /// a title is cut at 4,096 characters.
    pub async fn set_plan<'t>(
        &self,
        entries: impl IntoIterator<Item = (&'t str, TodoStatus)>,
    ) -> Result<(), DatabaseError> {
        let mut statements = vec![Statement::exec(TABLES)];
        let mut count = 0_u32;
        for (title, status) in entries.into_iter().take(MAX_PLAN) {
            count += 1;
            let title: String = title.chars().take(MAX_TITLE).collect();
            statements.push(
                Statement::run(
                    "INSERT INTO todos (id, title, status) VALUES (:id, :title, :status)
                     ON CONFLICT (id) DO UPDATE SET title = excluded.title, status = excluded.status,
                         updated_at = datetime('now') WHERE title <> excluded.title OR status <> excluded.status",
                )
                .with("id", format!("{PLAN}{count}").as_str())
                .with("title", title.as_str())
                .with("status", status.name()),
            );
        }
        if count == 0 && !self.database.exists().await? {
            return Ok(());
        }
        let stale = format!("id GLOB '{PLAN}[0-9]*' AND CAST(substr(id, {}) AS INTEGER) > {count}", PLAN.len() + 1);
        for column in ["todo_id", "depends_on"] {
            let sql = format!("DELETE FROM todo_deps WHERE {column} IN (SELECT id FROM todos WHERE {stale})");
            statements.push(Statement::run(&sql));
        }
        statements.push(Statement::run(format!("DELETE FROM todos WHERE {stale}")));
        self.database.transaction(statements).await.map(|_| ())
    }

    /// Removes an entry, also as a dependency; `false` if it did not exist.
    pub async fn remove(&self, id: &str) -> Result<bool, DatabaseError> {
        if !self.database.exists().await? {
            return Ok(false);
        }
        let statements = vec![
            Statement::exec(TABLES),
            Statement::run("DELETE FROM todo_deps WHERE todo_id = :id OR depends_on = :id").with("id", id),
            Statement::run("DELETE FROM todos WHERE id = :id").with("id", id),
        ];
        let done = self.database.transaction(statements).await?;
        Ok(done.last().is_some_and(|rows| rows.changed > 0))
    }
}

fn todo(row: &[Cell]) -> Result<Todo, DatabaseError> {
    let unexpected =
        |found: &dyn std::fmt::Debug| DatabaseError::Unexpected { place: "todos", found: format!("{found:?}") };
    let [id, Cell::Text(title), description, status] = row else { return Err(unexpected(&row)) };
    let (Some(id), Some(status)) = (text(id), text(status)) else { return Err(unexpected(&row)) };
    let known = TodoStatus::ALL.into_iter().find(|one| one.name() == status);
    Ok(Todo {
        id: id.to_owned(),
        title: title.clone(),
        description: text(description).map(str::to_owned),
        status: known.ok_or_else(|| unexpected(&status))?,
        depends_on: Vec::new(),
    })
}

fn pairs(rows: &QueryRows) -> impl Iterator<Item = (&str, &str)> {
    rows.rows.iter().filter_map(|row| match row.as_slice() {
        [first, second] => Some((text(first)?, text(second)?)),
        _ => None,
    })
}

fn text(cell: &Cell) -> Option<&str> {
    match cell {
        Cell::Text(text) => Some(text),
        Cell::Null | Cell::Integer(_) | Cell::Real(_) | Cell::Blob(_) => None,
    }
}
