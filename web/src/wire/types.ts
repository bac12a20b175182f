// Generated from grove-wire by `make types`; do not edit

/** An action on any channel. */
export type Action =
  | RootAction
  | SessionAction
  | ChatAction
  | TerminalAction
  | ChangesetAction
  | AnnotationsAction
  | ResourceWatchAction;

/** An action with its position in the order; also the params of `action`. */
export interface ActionEnvelope {
  action: Action;
  channel: string;
  serverSeq: number;
  /** Absent if the host itself is the origin. */
  origin?: ActionOrigin;
  /** Set if the action was refused, and so changed nothing. */
  rejectionReason?: string;
}

/** The client that dispatched an action, and the client's own number for it. */
export interface ActionOrigin {
  clientId: string;
  clientSeq: number;
}

/** The running turn. */
export interface ActiveTurn {
  id: string;
  message: Message;
  responseParts: ResponsePart[];
  startedAt: string;
  usage?: UsageInfo;
}

/** The capabilities of an agent: each is present or absent. */
export interface AgentCapabilities {
  multipleChats?: MultipleChatsCapability;
  multipleWorkingDirectories?: MultipleWorkingDirectoriesCapability;
}

export interface AgentCustomization {
  id: string;
  name: string;
  uri: string;
  _meta?: Record<string, unknown>;
  description?: string;
  disableModelInvocation?: boolean;
  disableUserInvocation?: boolean;
  enabled?: boolean;
  icons?: Icon[];
  model?: string;
  range?: TextRange;
  tools?: string[];
}

export interface AgentInfo {
  description: string;
  displayName: string;
  models: SessionModelInfo[];
  provider: string;
  capabilities?: AgentCapabilities;
  customizations?: Customization[];
  protectedResources?: ProtectedResourceMetadata[];
}

/** A chosen agent of a customization. */
export interface AgentSelection {
  uri: string;
}

/** The capabilities of a host for the pages of an MCP server. Their contents belong to MCP. */
export interface AhpMcpUiHostCapabilities {
  logging?: Record<string, unknown>;
  sampling?: Record<string, unknown>;
  serverResources?: Record<string, unknown>;
  serverTools?: Record<string, unknown>;
}

export interface Annotation {
  entries: AnnotationEntry[];
  id: string;
  origin: AnnotationOrigin;
  resolved: boolean;
  /** The file. */
  resource: string;
  _meta?: Record<string, unknown>;
  /** Absent means the whole file. */
  range?: TextRange;
}

export interface AnnotationEntry {
  id: string;
  text: StringOrMarkdown;
  _meta?: Record<string, unknown>;
}

/** The session, chat and turn in which an annotation was made. */
export interface AnnotationOrigin {
  session: string;
  chat?: string;
  turnId?: string;
}

export type AnnotationsAction =
  | ({ type: "annotations/set" } & AnnotationsSet)
  | ({ type: "annotations/updated" } & AnnotationsUpdated)
  | ({ type: "annotations/removed" } & AnnotationsRemoved)
  | ({ type: "annotations/entrySet" } & AnnotationsEntrySet)
  | ({ type: "annotations/entryRemoved" } & AnnotationsEntryRemoved);

export interface AnnotationsEntryRemoved {
  annotationId: string;
  entryId: string;
}

export interface AnnotationsEntrySet {
  annotationId: string;
  entry: AnnotationEntry;
}

export interface AnnotationsRemoved {
  annotationId: string;
}

export interface AnnotationsSet {
  annotation: Annotation;
}

/** The state of a session's annotations channel: its URI with `/annotations`. */
export interface AnnotationsState {
  annotations: Annotation[];
}

/** The number of annotations, in a session's state and row. */
export interface AnnotationsSummary {
  annotationCount: number;
  entryCount: number;
  resource: string;
}

/** Changes the given fields and leaves the others, the entries included. */
export interface AnnotationsUpdated {
  annotationId: string;
  origin?: AnnotationOrigin;
  range?: TextRange;
  resolved?: boolean;
  resource?: string;
}

export interface AuthRequiredData {
  resources: ProtectedResourceMetadata[];
}

export interface AuthRequiredParams {
  channel: string;
  resource: ProtectedResourceMetadata;
  reason?: AuthRequiredReason;
}

export type AuthRequiredReason = "required" | "expired";

/** A tool call that always waits for a token, tagged like any other. */
export type AuthRequiredToolCall =
  | ({ status: "auth-required" } & ToolCallAuthRequired);

/** Params of `authenticate`. */
export interface AuthenticateParams {
  channel: string;
  resource: string;
  /** An empty token revokes the earlier one. */
  token: string;
  _meta?: Record<string, unknown>;
  /** Seconds. */
  expiresIn?: number;
  scopes?: string[];
}

export interface AutomationSessionOrigin {
  automation: string;
  run: string;
}

export interface BackgroundShellWork {
  command: string;
  id: string;
  label: string;
  startedAt: string;
  _meta?: Record<string, unknown>;
  terminal?: string;
}

export interface BackgroundSubagentWork {
  chat: string;
  id: string;
  label: string;
  startedAt: string;
  _meta?: Record<string, unknown>;
}

/** Work of a chat that goes on after the turn. */
export type BackgroundWork =
  | ({ kind: "shell" } & BackgroundShellWork)
  | ({ kind: "subagent" } & BackgroundSubagentWork);

/** A summary of a session's or a chat's changes. */
export interface ChangesSummary {
  additions?: number;
  deletions?: number;
  files?: number;
}

/** A changeset in the catalogue of a session or a chat. */
export interface Changeset {
  /** `session`, `branch`, `uncommitted`, `turn`, `compare-turns`, or a host's own kind. */
  changeKind: string;
  label: string;
  /** Its URI, once the variables in braces are replaced. */
  uriTemplate: string;
  capabilities?: ChangesetCapabilities;
  description?: string;
}

export type ChangesetAction =
  | ({ type: "changeset/statusChanged" } & ChangesetStatusChanged)
  | ({ type: "changeset/fileSet" } & ChangesetFileSet)
  | ({ type: "changeset/fileRemoved" } & ChangesetFileRemoved)
  | ({ type: "changeset/filesReviewChanged" } & ChangesetFilesReviewChanged)
  | ({ type: "changeset/contentChanged" } & ChangesetContentChanged)
  | ({ type: "changeset/operationsChanged" } & ChangesetOperationsChanged)
  | ({ type: "changeset/operationStatusChanged" } & ChangesetOperationStatusChanged)
  | ({ type: "changeset/cleared" } & ChangesetCleared);

export interface ChangesetCapabilities {
  /** Files can be marked as reviewed. */
  review?: Record<string, unknown>;
}

export type ChangesetCleared = Record<never, never>;

/** Replaces all files. */
export interface ChangesetContentChanged {
  files: ChangesetFile[];
  operations?: ChangesetOperation[];
}

export interface ChangesetFile {
  edit: FileEdit;
  id: string;
  _meta?: Record<string, unknown>;
  reviewed?: boolean;
}

export interface ChangesetFileRemoved {
  fileId: string;
}

export interface ChangesetFileSet {
  file: ChangesetFile;
}

export interface ChangesetFilesReviewChanged {
  /** The files' ids. */
  files: string[];
  reviewed: boolean;
}

export interface ChangesetOperation {
  id: string;
  label: string;
  /** The possible targets. */
  scopes: ChangesetOperationScope[];
  status: ChangesetOperationStatus;
  /** A question to ask before running it. */
  confirmation?: StringOrMarkdown;
  description?: string;
  error?: ErrorInfo;
  group?: string;
  icon?: string;
}

/** A resource to open afterwards. */
export interface ChangesetOperationFollowUp {
  content: ContentRef;
  external?: boolean;
}

export type ChangesetOperationScope = "changeset" | "resource" | "range";

export type ChangesetOperationStatus = "idle" | "running" | "error" | "disabled";

export interface ChangesetOperationStatusChanged {
  operationId: string;
  status: ChangesetOperationStatus;
  error?: ErrorInfo;
}

export type ChangesetOperationTarget =
  | ({ kind: "resource" } & ResourceTarget)
  | ({ kind: "range" } & RangeTarget);

export interface ChangesetOperationsChanged {
  operations?: ChangesetOperation[];
}

/** The state of a changeset's channel. */
export interface ChangesetState {
  files: ChangesetFile[];
  status: ChangesetStatus;
  error?: ErrorInfo;
  operations?: ChangesetOperation[];
}

export type ChangesetStatus = "computing" | "recomputing" | "ready" | "error";

export interface ChangesetStatusChanged {
  status: ChangesetStatus;
  error?: ErrorInfo;
}

/** The params of a request with only a channel: `ping`, `disposeSession`, `disposeChat`, `disposeTerminal`. */
export interface ChannelParams {
  channel: string;
  _meta?: Record<string, unknown>;
}

/** The recovery of one channel. */
export type ChannelRecovery =
  | {
    actions: ActionEnvelope[];
    channel: string;
    kind: "replay";
  }
  | {
    channel: string;
    kind: "snapshot";
    snapshot: Snapshot;
  }
  | {
    channel: string;
    kind: "missing";
  };

export interface ChannelReplayCursor {
  channel: string;
  /** Zero if the client has no state of the channel. */
  lastSeenServerSeq: number;
}

export type ChatAction =
  | ({ type: "chat/turnStarted" } & ChatTurnStarted)
  | ({ type: "chat/delta" } & ChatDelta)
  | ({ type: "chat/responsePart" } & ChatResponsePart)
  | ({ type: "chat/reasoning" } & ChatReasoning)
  | ({ type: "chat/toolCallStart" } & ChatToolCallStart)
  | ({ type: "chat/toolCallDelta" } & ChatToolCallDelta)
  | ({ type: "chat/toolCallReady" } & ChatToolCallReady)
  | ({ type: "chat/toolCallConfirmed" } & ChatToolCallConfirmed)
  | ({ type: "chat/toolCallComplete" } & ChatToolCallComplete)
  | ({ type: "chat/toolCallResultConfirmed" } & ChatToolCallResultConfirmed)
  | ({ type: "chat/toolCallContentChanged" } & ChatToolCallContentChanged)
  | ({ type: "chat/toolCallAuthRequired" } & ChatToolCallAuthRequired)
  | ({ type: "chat/toolCallAuthResolved" } & ChatToolCallAuthResolved)
  | ({ type: "chat/usage" } & ChatUsage)
  | ({ type: "chat/turnComplete" } & ChatTurnComplete)
  | ({ type: "chat/turnCancelled" } & ChatTurnCancelled)
  | ({ type: "chat/error" } & ChatError)
  | ({ type: "chat/turnResume" } & ChatTurnResume)
  | ({ type: "chat/turnsLoaded" } & ChatTurnsLoaded)
  | ({ type: "chat/truncated" } & ChatTruncated)
  | ({ type: "chat/pendingMessageSet" } & ChatPendingMessageSet)
  | ({ type: "chat/pendingMessageRemoved" } & ChatPendingMessageRemoved)
  | ({ type: "chat/queuedMessagesReordered" } & ChatQueuedMessagesReordered)
  | ({ type: "chat/draftChanged" } & ChatDraftChanged)
  | ({ type: "chat/inputRequested" } & ChatInputRequested)
  | ({ type: "chat/inputAnswerChanged" } & ChatInputAnswerChanged)
  | ({ type: "chat/inputCompleted" } & ChatInputCompleted)
  | ({ type: "chat/isReadChanged" } & ChatIsReadChanged)
  | ({ type: "chat/isArchivedChanged" } & ChatIsArchivedChanged)
  | ({ type: "chat/activityChanged" } & ChatActivityChanged)
  | ({ type: "chat/backgroundWorkSet" } & ChatBackgroundWorkSet)
  | ({ type: "chat/backgroundWorkRemoved" } & ChatBackgroundWorkRemoved)
  | ({ type: "chat/movableChanged" } & ChatMovableChanged)
  | ({ type: "chat/changesetsChanged" } & ChatChangesetsChanged)
  | ({ type: "chat/canvasesChanged" } & ChatCanvasesChanged)
  | ({ type: "chat/workingDirectorySet" } & ChatWorkingDirectorySet)
  | ({ type: "chat/workingDirectoryRemoved" } & ChatWorkingDirectoryRemoved);

export interface ChatActivityChanged {
  activity?: string;
}

export interface ChatBackgroundWorkRemoved {
  id: string;
}

export interface ChatBackgroundWorkSet {
  work: BackgroundWork;
}

/** Canvases are not supported: kept as raw JSON. */
export interface ChatCanvasesChanged {
  canvases?: unknown;
}

export interface ChatChangesetsChanged {
  changesets?: Changeset[];
}

/** Appends text to an existing Markdown part. */
export interface ChatDelta {
  content: string;
  partId: string;
  turnId: string;
  _meta?: Record<string, unknown>;
}

export interface ChatDraftChanged {
  draft?: Message;
}

export interface ChatError {
  duration: number;
  part: ErrorPart;
  turnId: string;
  _meta?: Record<string, unknown>;
}

/** The state of an answer. The protocol closes this list. */
export type ChatInputAnswer =
  | ({ state: "draft" } & ChatInputAnswered)
  | ({ state: "submitted" } & ChatInputAnswered)
  | ({ state: "skipped" } & ChatInputSkipped);

/** An absent answer clears the answer. */
export interface ChatInputAnswerChanged {
  questionId: string;
  requestId: string;
  answer?: ChatInputAnswer;
}

export type ChatInputAnswerValue =
  | ({ kind: "text" } & ChatInputTextAnswer)
  | ({ kind: "number" } & ChatInputNumberAnswer)
  | ({ kind: "boolean" } & ChatInputBooleanAnswer)
  | ({ kind: "selected" } & ChatInputSelectedAnswer)
  | ({ kind: "selected-many" } & ChatInputSelectedManyAnswer);

export interface ChatInputAnswered {
  value: ChatInputAnswerValue;
}

export interface ChatInputBooleanAnswer {
  value: boolean;
}

export interface ChatInputBooleanQuestion {
  id: string;
  message: string;
  defaultValue?: boolean;
  required?: boolean;
  title?: string;
}

export interface ChatInputCompleted {
  requestId: string;
  response: ChatInputResponseKind;
  answers?: Record<string, ChatInputAnswer>;
}

export interface ChatInputMultiSelectQuestion {
  id: string;
  message: string;
  options: ChatInputOption[];
  allowFreeformInput?: boolean;
  /** The maximum number of choices. */
  max?: number;
  /** The minimum number of choices. */
  min?: number;
  required?: boolean;
  title?: string;
}

export interface ChatInputNumberAnswer {
  value: number;
}

/** Numbers are kept as they are written, so that 10 does not become 10.0. */
export interface ChatInputNumberQuestion {
  id: string;
  message: string;
  defaultValue?: number;
  max?: number;
  min?: number;
  required?: boolean;
  title?: string;
}

export interface ChatInputOption {
  id: string;
  label: string;
  description?: string;
  recommended?: boolean;
}

export type ChatInputQuestion =
  | ({ kind: "text" } & ChatInputTextQuestion)
  | ({ kind: "number" } & ChatInputNumberQuestion)
  | ({ kind: "integer" } & ChatInputNumberQuestion)
  | ({ kind: "boolean" } & ChatInputBooleanQuestion)
  | ({ kind: "single-select" } & ChatInputSingleSelectQuestion)
  | ({ kind: "multi-select" } & ChatInputMultiSelectQuestion);

export interface ChatInputRequest {
  id: string;
  /** By the question's id, in the order in which they were given. */
  answers?: Record<string, ChatInputAnswer>;
  message?: string;
  questions?: ChatInputQuestion[];
  /** A page to open instead of answering questions. */
  url?: string;
}

export interface ChatInputRequested {
  request: ChatInputRequest;
}

export type ChatInputResponseKind = "accept" | "decline" | "cancel";

export interface ChatInputSelectedAnswer {
  /** The option's id. */
  value: string;
  freeformValues?: string[];
}

export interface ChatInputSelectedManyAnswer {
  /** The options' ids. */
  value: string[];
  freeformValues?: string[];
}

export interface ChatInputSingleSelectQuestion {
  id: string;
  message: string;
  options: ChatInputOption[];
  allowFreeformInput?: boolean;
  required?: boolean;
  title?: string;
}

export interface ChatInputSkipped {
  freeformValues?: string[];
}

export interface ChatInputTextAnswer {
  value: string;
}

export interface ChatInputTextQuestion {
  id: string;
  message: string;
  defaultValue?: string;
  format?: string;
  /** The maximum number of characters. */
  max?: number;
  /** The minimum number of characters. */
  min?: number;
  required?: boolean;
  title?: string;
}

/** The user's access to a chat: writable, read-only or hidden. */
export type ChatInteractivity = "full" | "read-only" | "hidden";

export interface ChatIsArchivedChanged {
  isArchived: boolean;
}

export interface ChatIsReadChanged {
  isRead: boolean;
}

export interface ChatMovableChanged {
  movable: boolean;
}

export type ChatMoveDestination =
  | ({ kind: "session" } & MoveToSession)
  | ({ kind: "newSession" } & MoveToNewSession);

/** The origin of a chat. */
export type ChatOrigin =
  | ({ kind: "user" } & UserChatOrigin)
  | ({ kind: "fork" } & ForkChatOrigin)
  | ({ kind: "sideChat" } & SideChatOrigin)
  | ({ kind: "tool" } & ToolChatOrigin);

export interface ChatPendingMessageRemoved {
  id: string;
  kind: PendingMessageKind;
}

export interface ChatPendingMessageSet {
  id: string;
  kind: PendingMessageKind;
  message: Message;
}

/** The ids in their new order; unnamed messages follow. */
export interface ChatQueuedMessagesReordered {
  order: string[];
}

/** Appends text to an existing reasoning part. */
export interface ChatReasoning {
  content: string;
  partId: string;
  turnId: string;
  _meta?: Record<string, unknown>;
}

export interface ChatResponsePart {
  part: ResponsePart;
  turnId: string;
  _meta?: Record<string, unknown>;
}

/** The origin of a new chat's turns. */
export type ChatSource =
  | ({ kind: "fork" } & ForkChatSource)
  | ({ kind: "sideChat" } & SideChatSource);

/** The state of a chat's channel. */
export interface ChatState {
  modifiedAt: string;
  resource: string;
  /** See `super::status`. */
  status: number;
  title: string;
  /** The newest turns. There are older ones if `turns_next_cursor` is set. */
  turns: Turn[];
  _meta?: Record<string, unknown>;
  activeTurn?: ActiveTurn;
  activity?: string;
  backgroundWork?: BackgroundWork[];
  /** Canvases are not supported: kept as raw JSON. */
  canvases?: unknown;
  changes?: ChangesSummary;
  changesets?: Changeset[];
  draft?: Message;
  interactivity?: ChatInteractivity;
  movable?: boolean;
  origin?: ChatOrigin;
  queuedMessages?: PendingMessage[];
  steeringMessage?: PendingMessage;
  turnsNextCursor?: string;
  workingDirectories?: string[];
}

/** A chat's row in its session. */
export interface ChatSummary {
  modifiedAt: string;
  resource: string;
  status: number;
  title: string;
  activity?: string;
  changes?: ChangesSummary;
  interactivity?: ChatInteractivity;
  movable?: boolean;
  origin?: ChatOrigin;
  workingDirectories?: string[];
}

export interface ChatToolCallAuthRequired {
  auth: McpAuthRequirement;
  toolCallId: string;
  turnId: string;
  _meta?: Record<string, unknown>;
}

export interface ChatToolCallAuthResolved {
  toolCallId: string;
  turnId: string;
  _meta?: Record<string, unknown>;
}

export interface ChatToolCallComplete {
  result: ToolCallResult;
  toolCallId: string;
  turnId: string;
  _meta?: Record<string, unknown>;
  requiresResultConfirmation?: boolean;
}

/** The decision. An approval has `confirmed`, a refusal `reason`. */
export interface ChatToolCallConfirmed {
  approved: boolean;
  toolCallId: string;
  turnId: string;
  _meta?: Record<string, unknown>;
  confirmed?: ToolCallConfirmationReason;
  editedToolInput?: string;
  reason?: ToolCallCancellationReason;
  reasonMessage?: StringOrMarkdown;
  selectedOptionId?: string;
  userSuggestion?: Message;
}

export interface ChatToolCallContentChanged {
  content: ToolResultContent[];
  toolCallId: string;
  turnId: string;
  _meta?: Record<string, unknown>;
}

export interface ChatToolCallDelta {
  toolCallId: string;
  turnId: string;
  _meta?: Record<string, unknown>;
  content?: string;
  invocationMessage?: StringOrMarkdown;
}

/**
 * The input is complete. With `confirmed` the call runs; without, it waits for permission. A running call may
 * return to this state to be asked about again.
 */
export interface ChatToolCallReady {
  invocationMessage: StringOrMarkdown;
  toolCallId: string;
  turnId: string;
  _meta?: Record<string, unknown>;
  confirmationTitle?: StringOrMarkdown;
  confirmed?: ToolCallConfirmationReason;
  contributor?: ToolCallContributor;
  editable?: boolean;
  edits?: FileEditCollection;
  intention?: string;
  options?: ConfirmationOption[];
  riskAssessment?: ToolCallRiskAssessment;
  toolInput?: ToolInput;
}

export interface ChatToolCallResultConfirmed {
  approved: boolean;
  toolCallId: string;
  turnId: string;
  _meta?: Record<string, unknown>;
}

/** A call begins. It is a part of the answer from now on, without a `chat/responsePart`. */
export interface ChatToolCallStart {
  displayName: string;
  toolCallId: string;
  toolName: string;
  turnId: string;
  _meta?: Record<string, unknown>;
  contributor?: ToolCallContributor;
  intention?: string;
}

/** Removes every turn after `turn_id`, or all turns. */
export interface ChatTruncated {
  turnId?: string;
}

export interface ChatTurnCancelled {
  duration: number;
  turnId: string;
  _meta?: Record<string, unknown>;
}

/** Durations are milliseconds. They are signed, so that a client with a slow clock can still cancel. */
export interface ChatTurnComplete {
  duration: number;
  turnId: string;
  _meta?: Record<string, unknown>;
}

/** Resumes the last turn, if it ended in a resumable error. */
export interface ChatTurnResume {
  turnId: string;
}

export interface ChatTurnStarted {
  message: Message;
  startedAt: string;
  turnId: string;
  _meta?: Record<string, unknown>;
  /** The queued or steering message that became this turn. */
  queuedMessageId?: string;
}

/** Older turns, to be inserted before the present ones. */
export interface ChatTurnsLoaded {
  turns: Turn[];
  turnsNextCursor?: string;
}

export interface ChatUsage {
  turnId: string;
  usage: UsageInfo;
  _meta?: Record<string, unknown>;
}

export interface ChatWorkingDirectoryRemoved {
  directory: string;
}

export interface ChatWorkingDirectorySet {
  directory: string;
}

/** A customization in a container. */
export type ChildCustomization =
  | ({ type: "agent" } & AgentCustomization)
  | ({ type: "skill" } & SkillCustomization)
  | ({ type: "prompt" } & PromptCustomization)
  | ({ type: "rule" } & RuleCustomization)
  | ({ type: "hook" } & HookCustomization)
  | ({ type: "mcpServer" } & McpServerCustomization);

/** The capabilities of a client: each is present or absent. */
export interface ClientCapabilities {
  mcpApps?: Record<string, unknown>;
}

/** The params of each notification that a client sends. */
export interface ClientNotifications {
  dispatchAction: DispatchActionParams;
  unsubscribe: UnsubscribeParams;
}

/** A plugin that a client brings to a session. */
export interface ClientPluginCustomization {
  id: string;
  name: string;
  /** Always a plugin. */
  type: CustomizationType;
  uri: string;
  _meta?: Record<string, unknown>;
  childEnablement?: Record<string, CustomizationEnablement[]>;
  children?: ChildCustomization[];
  clientId?: string;
  enablement?: CustomizationEnablement[];
  icons?: Icon[];
  load?: CustomizationLoadState;
  /** Changes whenever the plugin's contents do. */
  nonce?: string;
  range?: TextRange;
  version?: string;
}

export interface CompletionItem {
  attachment: MessageAttachment;
  insertText: string;
  rangeEnd?: number;
  rangeStart?: number;
}

export type CompletionItemKind = "userMessage";

export interface CompletionsParams {
  channel: string;
  kind: CompletionItemKind;
  /** In UTF-16 units. */
  offset: number;
  text: string;
  _meta?: Record<string, unknown>;
}

export interface CompletionsResult {
  items: CompletionItem[];
}

/** The part of a JSON schema that a form needs. */
export interface ConfigPropertySchema {
  title: string;
  /** `string`, `number`, `boolean`, `array` or `object`. */
  type: string;
  additionalProperties?: ConfigPropertySchema;
  default?: unknown;
  description?: string;
  enum?: unknown[];
  enumDescriptions?: string[];
  /** The labels of `enum`, in its order. */
  enumLabels?: string[];
  items?: ConfigPropertySchema;
  maxItems?: number;
  minItems?: number;
  properties?: Record<string, ConfigPropertySchema>;
  readOnly?: boolean;
  required?: string[];
}

export interface ConfigSchema {
  properties: Record<string, ConfigPropertySchema>;
  /** Always `object`. */
  type: string;
  required?: string[];
}

/** A button of a confirmation. */
export interface ConfirmationOption {
  id: string;
  kind: ConfirmationOptionKind;
  label: string;
  /** Buttons of a group are shown together. */
  group?: number;
}

export type ConfirmationOptionKind = "approve" | "deny";

export type ContentEncoding = "base64" | "utf-8";

/** Content that is stored elsewhere and fetched with `resourceRead`. */
export interface ContentRef {
  uri: string;
  contentType?: string;
  nonce?: string;
  sizeHint?: number;
}

/** The channel is the session's; the client chooses the chat's URI. */
export interface CreateChatParams {
  channel: string;
  chat: string;
  _meta?: Record<string, unknown>;
  initialMessage?: Message;
  source?: ChatSource;
  workingDirectories?: string[];
}

export interface CreateResourceWatchParams {
  channel: string;
  uri: string;
  _meta?: Record<string, unknown>;
  excludes?: Globs;
  includes?: Globs;
  recursive?: boolean;
}

/** The URI to subscribe to. The watch ends with its last subscriber. */
export interface CreateResourceWatchResult {
  channel: string;
}

/** The channel is the URI of the new session, which the client chooses. */
export interface CreateSessionParams {
  channel: string;
  _meta?: Record<string, unknown>;
  activeClient?: SessionActiveClient;
  config?: Record<string, unknown>;
  progressToken?: string;
  provider?: string;
  workingDirectories?: string[];
}

/** The channel is the URI of the new terminal, which the client chooses. */
export interface CreateTerminalParams {
  channel: string;
  claim: TerminalClaim;
  _meta?: Record<string, unknown>;
  cols?: number;
  cwd?: string;
  name?: string;
  rows?: number;
}

/** A top-level customization: a container, or an MCP server outside of any. */
export type Customization =
  | ({ type: "plugin" } & PluginCustomization)
  | ({ type: "directory" } & DirectoryCustomization)
  | ({ type: "mcpServer" } & McpServerCustomization);

/** A decision to enable or disable something, with its scope. */
export type CustomizationEnablement =
  | ({ kind: "global" } & GlobalEnablement)
  | ({ kind: "workspace" } & WorkspaceEnablement)
  | ({ kind: "session" } & SessionEnablement);

/** The load state of a container. The protocol closes this list. */
export type CustomizationLoadState =
  | {
    kind: "loading";
  }
  | {
    kind: "loaded";
  }
  | {
    kind: "degraded";
    message: string;
  }
  | {
    kind: "error";
    message: string;
  };

export type CustomizationType = "plugin" | "directory" | "agent" | "skill" | "prompt" | "rule" | "hook" | "mcpServer";

export interface DirectoryCustomization {
  /** The type of its contents. */
  contents: CustomizationType;
  enabled: boolean;
  id: string;
  name: string;
  uri: string;
  writable: boolean;
  _meta?: Record<string, unknown>;
  children?: ChildCustomization[];
  clientId?: string;
  icons?: Icon[];
  load?: CustomizationLoadState;
  range?: TextRange;
}

export interface DirectoryEntry {
  name: string;
  type: DirectoryEntryType;
}

export type DirectoryEntryType = "file" | "directory";

/**
 * Params of `dispatchAction`. The action is kept raw, so that other clients get the fields that this build does not
 * know.
 */
export interface DispatchActionParams {
  action: Action;
  channel: string;
  clientSeq: number;
}

/**
 * The empty object as a result: `fetchTurns`, `authenticate`, and those that write resources. Other requests
 * without a result return `null`.
 */
export type EmptyResult = Record<never, never>;

/** The data of an error. The error's code decides the variant. */
export type ErrorData =
  | UnsupportedProtocolVersionData
  | AuthRequiredData
  | PermissionDeniedData;

export interface ErrorInfo {
  errorType: string;
  message: string;
  _meta?: Record<string, unknown>;
  stack?: string;
}

/** The error of a response. */
export interface ErrorObject {
  code: number;
  message: string;
  data?: ErrorData;
}

/** A part that is always an error, tagged like any other. */
export type ErrorPart =
  | ({ kind: "error" } & ErrorResponsePart);

/** The error that ended the turn. If it is resumable, `chat/turnResume` continues the turn. */
export interface ErrorResponsePart {
  error: ErrorInfo;
  resumable?: boolean;
}

/** Older turns are sent as `chat/turnsLoaded` before the result, which is empty. */
export interface FetchTurnsParams {
  channel: string;
  _meta?: Record<string, unknown>;
  cursor?: string;
}

/** A change of one file. Without `before` it is new, without `after` it is deleted, and with two URIs it is moved. */
export interface FileEdit {
  after?: FileEditSide;
  before?: FileEditSide;
  diff?: FileEditDiffStats;
}

export interface FileEditCollection {
  items: FileEdit[];
}

/** Counted in lines. */
export interface FileEditDiffStats {
  added?: number;
  removed?: number;
}

export interface FileEditSide {
  content: ContentRef;
  uri: string;
}

export interface ForkChatOrigin {
  chat: string;
  turnId: string;
}

export interface ForkChatSource {
  chat: string;
  turnId: string;
}

export interface GlobalEnablement {
  enabled: boolean;
}

/** Patterns, or paths below the watched place. */
export interface Globs {
  items: string[];
}

export interface HookCustomization {
  id: string;
  name: string;
  uri: string;
  _meta?: Record<string, unknown>;
  enabled?: boolean;
  icons?: Icon[];
  range?: TextRange;
}

export interface Icon {
  src: string;
  contentType?: string;
  /** Like `48x48`, or `any`. */
  sizes?: string[];
  /** `light` or `dark`. */
  theme?: string;
}

/** A program's name, for people. Nothing depends on it. */
export interface Implementation {
  name: string;
  title?: string;
  version?: string;
}

export interface InitializeParams {
  channel: string;
  clientId: string;
  /** The preferred one first. */
  protocolVersions: string[];
  _meta?: Record<string, unknown>;
  capabilities?: ClientCapabilities;
  clientInfo?: Implementation;
  initialSubscriptions?: string[];
  /** BCP 47. */
  locale?: string;
}

export interface InitializeResult {
  /** One of the offered versions, as it was offered. */
  protocolVersion: string;
  serverSeq: number;
  snapshots: Snapshot[];
  _meta?: Record<string, unknown>;
  /** Automations are not supported: this host never sets it. */
  automations?: Record<string, unknown>;
  completionTriggerCharacters?: string[];
  defaultDirectory?: string;
  serverInfo?: Implementation;
  telemetry?: TelemetryCapabilities;
  /** The prefix that makes a message a terminal command. */
  terminalCommandPrefix?: string;
}

/** A question to the user, with its outcome once it is answered. */
export interface InputRequestResponsePart {
  request: ChatInputRequest;
  response?: ChatInputResponseKind;
}

export interface InvokeChangesetOperationParams {
  channel: string;
  operationId: string;
  _meta?: Record<string, unknown>;
  /** Absent means the whole changeset. */
  target?: ChangesetOperationTarget;
}

export interface InvokeChangesetOperationResult {
  followUp?: ChangesetOperationFollowUp;
  message?: StringOrMarkdown;
}

export interface ListSessionsParams {
  channel: string;
  _meta?: Record<string, unknown>;
  cursor?: string;
  limit?: number;
}

/** The most recently modified session comes first. */
export interface ListSessionsResult {
  items: SessionSummary[];
  nextCursor?: string;
}

/** Text of the answer. `chat/delta` appends to it by its id. */
export interface MarkdownResponsePart {
  content: string;
  id: string;
}

export type McpAuthRequiredReason = "required" | "expired" | "insufficientScope";

/** The authorization that a tool call or an MCP server waits for. */
export interface McpAuthRequirement {
  reason: McpAuthRequiredReason;
  resource: ProtectedResourceMetadata;
  description?: string;
  oauthClient?: McpOAuthClient;
  requiredScopes?: string[];
}

/** A client's registration with the server's identity provider, if the host has one. */
export interface McpOAuthClient {
  clientId: string;
  clientSecret?: string;
}

export interface McpServerCustomization {
  id: string;
  name: string;
  state: McpServerState;
  uri: string;
  _meta?: Record<string, unknown>;
  /** The side channel on which a client may talk to the server. */
  channel?: string;
  enablement?: CustomizationEnablement[];
  icons?: Icon[];
  mcpApp?: McpServerCustomizationApps;
  range?: TextRange;
}

export interface McpServerCustomizationApps {
  capabilities: AhpMcpUiHostCapabilities;
}

export interface McpServerFailed {
  error: ErrorInfo;
}

export type McpServerReady = Record<never, never>;

export interface McpServerStarting {
  /** True if messages wait for it. `session/mcpServerBackgroundRequested` stops that. */
  blocking?: boolean;
}

export type McpServerState =
  | ({ kind: "starting" } & McpServerStarting)
  | ({ kind: "ready" } & McpServerReady)
  | ({ kind: "authRequired" } & McpAuthRequirement)
  | ({ kind: "error" } & McpServerFailed)
  | ({ kind: "stopped" } & McpServerStopped);

export type McpServerStopped = Record<never, never>;

export interface Message {
  origin: MessageOrigin;
  text: string;
  _meta?: Record<string, unknown>;
  agent?: AgentSelection;
  attachments?: MessageAttachment[];
  model?: ModelSelection;
}

export interface MessageAnnotationsAttachment {
  label: string;
  resource: string;
  _meta?: Record<string, unknown>;
  /** Absent means all of them. */
  annotationIds?: string[];
  displayKind?: string;
  range?: TextRange;
}

export type MessageAttachment =
  | ({ type: "simple" } & SimpleMessageAttachment)
  | ({ type: "embeddedResource" } & MessageEmbeddedResourceAttachment)
  | ({ type: "resource" } & MessageResourceAttachment)
  | ({ type: "annotations" } & MessageAnnotationsAttachment)
  | ({ type: "chat" } & MessageChatAttachment);

export interface MessageChatAttachment {
  label: string;
  resource: string;
  _meta?: Record<string, unknown>;
  displayKind?: string;
  /** The last included turn. */
  endTurn?: string;
  range?: TextRange;
}

export interface MessageEmbeddedResourceAttachment {
  contentType: string;
  /** Base64. */
  data: string;
  label: string;
  _meta?: Record<string, unknown>;
  displayKind?: string;
  range?: TextRange;
  selection?: TextSelection;
}

export type MessageKind = "user" | "agent" | "tool" | "automation" | "systemNotification";

export interface MessageOrigin {
  kind: MessageKind;
}

export interface MessageResourceAttachment {
  label: string;
  uri: string;
  _meta?: Record<string, unknown>;
  contentType?: string;
  displayKind?: string;
  nonce?: string;
  range?: TextRange;
  selection?: TextSelection;
  sizeHint?: number;
}

/** A chosen model with its settings. */
export interface ModelSelection {
  id: string;
  config?: Record<string, unknown>;
}

export interface MoveChatParams {
  channel: string;
  destination: ChatMoveDestination;
  _meta?: Record<string, unknown>;
}

export interface MoveChatResult {
  session: string;
}

export type MoveToNewSession = Record<never, never>;

export interface MoveToSession {
  session: string;
  /** The preceding chat; absent means the end. */
  after?: string;
}

export interface MultipleChatsCapability {
  fork?: boolean;
  sideChat?: boolean;
}

export interface MultipleWorkingDirectoriesCapability {
  /** The first directory cannot be changed. */
  immutablePrimary?: boolean;
  /** The first directory may be replaced. */
  primaryReplacement?: boolean;
}

/** The params of each notification that a host sends. */
export interface Notifications {
  action: ActionEnvelope;
  "auth/required": AuthRequiredParams;
  "root/progress": ProgressParams;
  "root/sessionAdded": SessionAddedParams;
  "root/sessionRemoved": SessionRemovedParams;
  "root/sessionSummaryChanged": SessionSummaryChangedParams;
}

/** The changed fields of a row. It cannot clear a field. */
export interface PartialChatSummary {
  activity?: string;
  changes?: ChangesSummary;
  interactivity?: ChatInteractivity;
  modifiedAt?: string;
  movable?: boolean;
  origin?: ChatOrigin;
  /** Never changes; it is here because the protocol's type has it. */
  resource?: string;
  status?: number;
  title?: string;
  workingDirectories?: string[];
}

/** The changed fields of a row. It cannot clear a field. */
export interface PartialSessionSummary {
  _meta?: Record<string, unknown>;
  activity?: string;
  annotations?: AnnotationsSummary;
  changes?: ChangesSummary;
  chats?: SessionChatSummary[];
  createdAt?: string;
  defaultChat?: string;
  modifiedAt?: string;
  origin?: SessionOrigin;
  project?: ProjectInfo;
  provider?: string;
  /** Never changes; it is here because the protocol's type has it. */
  resource?: string;
  status?: number;
  title?: string;
  workingDirectories?: string[];
}

/** A waiting message: for the running turn, or for the next one. */
export interface PendingMessage {
  id: string;
  message: Message;
}

export type PendingMessageKind = "steering" | "queued";

/** The access to ask for with `resourceRequest`, if asking could help. */
export interface PermissionDeniedData {
  request?: ResourceRequestParams;
}

export interface PluginCustomization {
  id: string;
  name: string;
  uri: string;
  _meta?: Record<string, unknown>;
  children?: ChildCustomization[];
  /** The client that brought it. */
  clientId?: string;
  enablement?: CustomizationEnablement[];
  icons?: Icon[];
  load?: CustomizationLoadState;
  range?: TextRange;
  version?: string;
}

export type PolicyState = "enabled" | "disabled" | "unconfigured";

/** The progress of the request with this token. It is done when `progress` reaches `total`. */
export interface ProgressParams {
  channel: string;
  progress: number;
  progressToken: string;
  message?: string;
  total?: number;
}

export interface ProjectInfo {
  displayName: string;
  uri: string;
}

export interface PromptCustomization {
  id: string;
  name: string;
  uri: string;
  _meta?: Record<string, unknown>;
  description?: string;
  enabled?: boolean;
  icons?: Icon[];
  range?: TextRange;
}

/** A protected resource as described in RFC 9728; hence the names in snake case. */
export interface ProtectedResourceMetadata {
  resource: string;
  authorization_servers?: string[];
  bearer_methods_supported?: string[];
  jwks_uri?: string;
  /** True if nothing works without a token. Absent means false. */
  required?: boolean;
  resource_documentation?: string;
  resource_name?: string;
  resource_policy_uri?: string;
  resource_signing_alg_values_supported?: string[];
  resource_tos_uri?: string;
  scopes_supported?: string[];
}

export interface RangeTarget {
  range: TextRange;
  resource: string;
  /** `before` or `after`. */
  side?: string;
}

/** Text of the thinking. `chat/reasoning` appends to it by its id. */
export interface ReasoningResponsePart {
  content: string;
  id: string;
}

/** The result of `reconnect`, in the form of the request. */
export type ReconnectAnswer =
  | ReconnectResult
  | ReconnectChannelsResult;

/** One outcome for each requested channel. */
export interface ReconnectChannelsResult {
  channels: ChannelRecovery[];
}

/** Params of `reconnect`, in either form. */
export type ReconnectParams =
  | ReconnectWithWatermark
  | ReconnectWithCursors;

export interface ReconnectReplay {
  actions: ActionEnvelope[];
  /** Channels that do not exist any more. */
  missing: string[];
}

/** Result of `reconnect` in the form of 1.0: everything is replayed, or nothing. */
export type ReconnectResult =
  | ({ type: "replay" } & ReconnectReplay)
  | ({ type: "snapshot" } & ReconnectSnapshots);

export interface ReconnectSnapshots {
  snapshots: Snapshot[];
}

/** `reconnect` after 1.0: a number for each channel, so that a fast channel cannot hide the gap of a slow one. */
export interface ReconnectWithCursors {
  clientId: string;
  subscriptions: ChannelReplayCursor[];
  _meta?: Record<string, unknown>;
  channel?: string;
}

/** `reconnect` of 1.0: one number for all channels. */
export interface ReconnectWithWatermark {
  clientId: string;
  lastSeenServerSeq: number;
  subscriptions: string[];
  _meta?: Record<string, unknown>;
  /** Required by the protocol, but VS Code omits it. */
  channel?: string;
}

/** The params of each request. */
export interface Requests {
  authenticate: AuthenticateParams;
  completions: CompletionsParams;
  createChat: CreateChatParams;
  createResourceWatch: CreateResourceWatchParams;
  createSession: CreateSessionParams;
  createTerminal: CreateTerminalParams;
  disposeChat: ChannelParams;
  disposeSession: ChannelParams;
  disposeTerminal: ChannelParams;
  fetchTurns: FetchTurnsParams;
  initialize: InitializeParams;
  invokeChangesetOperation: InvokeChangesetOperationParams;
  listSessions: ListSessionsParams;
  moveChat: MoveChatParams;
  ping: ChannelParams;
  reconnect: ReconnectParams;
  resolveSessionConfig: ResolveSessionConfigParams;
  resourceCopy: ResourceCopyParams;
  resourceDelete: ResourceDeleteParams;
  resourceList: ResourceListParams;
  resourceMkdir: ResourceMkdirParams;
  resourceMove: ResourceMoveParams;
  resourceRead: ResourceReadParams;
  resourceRequest: ResourceRequestParams;
  resourceResolve: ResourceResolveParams;
  resourceWrite: ResourceWriteParams;
  sessionConfigCompletions: SessionConfigCompletionsParams;
  subscribe: SubscribeParams;
}

export interface ResolveSessionConfigParams {
  channel: string;
  _meta?: Record<string, unknown>;
  config?: Record<string, unknown>;
  provider?: string;
  workingDirectory?: string;
}

export interface ResolveSessionConfigResult {
  schema: SessionConfigSchema;
  values: Record<string, unknown>;
}

export interface ResourceChange {
  type: ResourceChangeType;
  uri: string;
}

export type ResourceChangeType = "added" | "updated" | "deleted";

export interface ResourceChanges {
  items: ResourceChange[];
}

export interface ResourceCopyParams {
  channel: string;
  destination: string;
  source: string;
  _meta?: Record<string, unknown>;
  failIfExists?: boolean;
}

export interface ResourceDeleteParams {
  channel: string;
  uri: string;
  _meta?: Record<string, unknown>;
  recursive?: boolean;
}

export interface ResourceListParams {
  channel: string;
  uri: string;
  _meta?: Record<string, unknown>;
}

export interface ResourceListResult {
  entries: DirectoryEntry[];
}

export interface ResourceMkdirParams {
  channel: string;
  uri: string;
  _meta?: Record<string, unknown>;
}

export interface ResourceMoveParams {
  channel: string;
  destination: string;
  source: string;
  _meta?: Record<string, unknown>;
  failIfExists?: boolean;
}

export interface ResourceReadParams {
  channel: string;
  uri: string;
  _meta?: Record<string, unknown>;
  encoding?: ContentEncoding;
}

export interface ResourceReadResult {
  data: string;
  encoding: ContentEncoding;
  contentType?: string;
}

/** Asks for access. */
export interface ResourceRequestParams {
  channel: string;
  uri: string;
  _meta?: Record<string, unknown>;
  read?: boolean;
  write?: boolean;
}

export interface ResourceResolveParams {
  channel: string;
  uri: string;
  _meta?: Record<string, unknown>;
  followSymlinks?: boolean;
}

export interface ResourceResolveResult {
  type: ResourceType;
  /** The resolved location, without links. */
  uri: string;
  contentType?: string;
  ctime?: string;
  etag?: string;
  mtime?: string;
  size?: number;
}

export interface ResourceTarget {
  resource: string;
  /** `before` or `after`. */
  side?: string;
}

export type ResourceType = "file" | "directory" | "symlink";

export type ResourceWatchAction =
  | ({ type: "resourceWatch/changed" } & ResourceWatchChanged);

export interface ResourceWatchChanged {
  changes: ResourceChanges;
}

/** The state of a watch's channel. */
export interface ResourceWatchState {
  recursive: boolean;
  root: string;
  excludes?: Globs;
  includes?: Globs;
}

export type ResourceWriteMode = "truncate" | "append" | "insert";

export interface ResourceWriteParams {
  channel: string;
  data: string;
  encoding: ContentEncoding;
  uri: string;
  _meta?: Record<string, unknown>;
  contentType?: string;
  createOnly?: boolean;
  /** The `etag` that the resource must still have. */
  ifMatch?: string;
  mode?: ResourceWriteMode;
  /** In bytes; the position for `insert`. */
  position?: number;
}

/** A piece of an answer, in order. */
export type ResponsePart =
  | ({ kind: "markdown" } & MarkdownResponsePart)
  | ({ kind: "contentRef" } & ContentRef)
  | ({ kind: "toolCall" } & ToolCallResponsePart)
  | ({ kind: "reasoning" } & ReasoningResponsePart)
  | ({ kind: "systemNotification" } & SystemNotificationResponsePart)
  | ({ kind: "inputRequest" } & InputRequestResponsePart)
  | ({ kind: "error" } & ErrorResponsePart);

/** The result of each request. */
export interface Results {
  authenticate: EmptyResult;
  completions: CompletionsResult;
  createChat: null;
  createResourceWatch: CreateResourceWatchResult;
  createSession: null;
  createTerminal: null;
  disposeChat: null;
  disposeSession: null;
  disposeTerminal: null;
  fetchTurns: EmptyResult;
  initialize: InitializeResult;
  invokeChangesetOperation: InvokeChangesetOperationResult;
  listSessions: ListSessionsResult;
  moveChat: MoveChatResult;
  ping: null;
  reconnect: ReconnectAnswer;
  resolveSessionConfig: ResolveSessionConfigResult;
  resourceCopy: EmptyResult;
  resourceDelete: EmptyResult;
  resourceList: ResourceListResult;
  resourceMkdir: EmptyResult;
  resourceMove: EmptyResult;
  resourceRead: ResourceReadResult;
  resourceRequest: EmptyResult;
  resourceResolve: ResourceResolveResult;
  resourceWrite: EmptyResult;
  sessionConfigCompletions: SessionConfigCompletionsResult;
  subscribe: SubscribeResult;
}

export type RootAction =
  | ({ type: "root/agentsChanged" } & RootAgentsChanged)
  | ({ type: "root/activeSessionsChanged" } & RootActiveSessionsChanged)
  | ({ type: "root/terminalsChanged" } & RootTerminalsChanged)
  | ({ type: "root/configChanged" } & RootConfigChanged);

export interface RootActiveSessionsChanged {
  activeSessions: number;
}

export interface RootAgentsChanged {
  agents: AgentInfo[];
}

/** Merges or replaces values. */
export interface RootConfigChanged {
  config: Record<string, unknown>;
  replace?: boolean;
}

/** The settings of the host itself. */
export interface RootConfigState {
  schema: ConfigSchema;
  values: Record<string, unknown>;
}

/** The state of `ahp-root://`. The list of sessions is not part of it: see `listSessions`. */
export interface RootState {
  agents: AgentInfo[];
  _meta?: Record<string, unknown>;
  activeSessions?: number;
  config?: RootConfigState;
  terminals?: TerminalInfo[];
}

export interface RootTerminalsChanged {
  terminals: TerminalInfo[];
}

export interface RuleCustomization {
  id: string;
  name: string;
  uri: string;
  _meta?: Record<string, unknown>;
  alwaysApply?: boolean;
  description?: string;
  enabled?: boolean;
  globs?: string[];
  icons?: Icon[];
  range?: TextRange;
}

/** A tool call that is always running, tagged like any other. */
export type RunningToolCall =
  | ({ status: "running" } & ToolCallRunning);

export type SessionAction =
  | ({ type: "session/ready" } & SessionReady)
  | ({ type: "session/creationFailed" } & SessionCreationFailed)
  | ({ type: "session/chatAdded" } & SessionChatAdded)
  | ({ type: "session/chatRemoved" } & SessionChatRemoved)
  | ({ type: "session/chatUpdated" } & SessionChatUpdated)
  | ({ type: "session/chatsReordered" } & SessionChatsReordered)
  | ({ type: "session/defaultChatChanged" } & SessionDefaultChatChanged)
  | ({ type: "session/titleChanged" } & SessionTitleChanged)
  | ({ type: "session/isReadChanged" } & SessionIsReadChanged)
  | ({ type: "session/isArchivedChanged" } & SessionIsArchivedChanged)
  | ({ type: "session/activityChanged" } & SessionActivityChanged)
  | ({ type: "session/changesetsChanged" } & SessionChangesetsChanged)
  | ({ type: "session/serverToolsChanged" } & SessionServerToolsChanged)
  | ({ type: "session/activeClientSet" } & SessionActiveClientSet)
  | ({ type: "session/activeClientRemoved" } & SessionActiveClientRemoved)
  | ({ type: "session/workingDirectorySet" } & SessionWorkingDirectorySet)
  | ({ type: "session/workingDirectoryRemoved" } & SessionWorkingDirectoryRemoved)
  | ({ type: "session/workingDirectoryReplaced" } & SessionWorkingDirectoryReplaced)
  | ({ type: "session/inputNeededSet" } & SessionInputNeededSet)
  | ({ type: "session/inputNeededRemoved" } & SessionInputNeededRemoved)
  | ({ type: "session/customizationsChanged" } & SessionCustomizationsChanged)
  | ({ type: "session/customizationToggled" } & SessionCustomizationToggled)
  | ({ type: "session/customizationUpdated" } & SessionCustomizationUpdated)
  | ({ type: "session/customizationRemoved" } & SessionCustomizationRemoved)
  | ({ type: "session/mcpServerStateChanged" } & SessionMcpServerStateChanged)
  | ({ type: "session/mcpServerStartRequested" } & SessionMcpServerStartRequested)
  | ({ type: "session/mcpServerStopRequested" } & SessionMcpServerStopRequested)
  | ({ type: "session/mcpServerBackgroundRequested" } & SessionMcpServerBackgroundRequested)
  | ({ type: "session/configChanged" } & SessionConfigChanged)
  | ({ type: "session/metaChanged" } & SessionMetaChanged);

/** A client that takes part in a session with tools or plugins of its own. */
export interface SessionActiveClient {
  clientId: string;
  tools: ToolDefinition[];
  customizations?: ClientPluginCustomization[];
  displayName?: string;
}

export interface SessionActiveClientRemoved {
  clientId: string;
}

/** Adds a client that takes part, or updates its tools and plugins. */
export interface SessionActiveClientSet {
  activeClient: SessionActiveClient;
}

export interface SessionActivityChanged {
  activity?: string;
}

export interface SessionAddedParams {
  channel: string;
  summary: SessionSummary;
}

export interface SessionChangesetsChanged {
  changesets?: Changeset[];
}

/** Adds a chat, or replaces one of the same URI. */
export interface SessionChatAdded {
  summary: ChatSummary;
}

export interface SessionChatInputRequest {
  chat: string;
  id: string;
  request: ChatInputRequest;
}

export interface SessionChatRemoved {
  chat: string;
}

/** A chat in a session's row: enough for navigation. */
export interface SessionChatSummary {
  resource: string;
  title: string;
  changes?: ChangesSummary;
  interactivity?: ChatInteractivity;
  origin?: ChatOrigin;
  status?: number;
}

export interface SessionChatUpdated {
  changes: PartialChatSummary;
  chat: string;
}

/** The order of all chats. An order that does not name exactly the existing chats changes nothing. */
export interface SessionChatsReordered {
  chats: string[];
}

/** Merges or replaces values. */
export interface SessionConfigChanged {
  config: Record<string, unknown>;
  replace?: boolean;
}

export interface SessionConfigCompletionsParams {
  channel: string;
  property: string;
  _meta?: Record<string, unknown>;
  config?: Record<string, unknown>;
  provider?: string;
  query?: string;
  workingDirectory?: string;
}

export interface SessionConfigCompletionsResult {
  items: SessionConfigValueItem[];
}

/** A setting of a session: like one of the host, plus its mutability. */
export interface SessionConfigPropertySchema {
  title: string;
  type: string;
  additionalProperties?: ConfigPropertySchema;
  default?: unknown;
  description?: string;
  enum?: unknown[];
  enumDescriptions?: string[];
  /** `enum` is incomplete: `sessionConfigCompletions` finds more. */
  enumDynamic?: boolean;
  enumLabels?: string[];
  items?: ConfigPropertySchema;
  maxItems?: number;
  minItems?: number;
  properties?: Record<string, ConfigPropertySchema>;
  readOnly?: boolean;
  required?: string[];
  /** True if it may be changed while the session runs. */
  sessionMutable?: boolean;
}

export interface SessionConfigSchema {
  properties: Record<string, SessionConfigPropertySchema>;
  /** Always `object`. */
  type: string;
  required?: string[];
}

export interface SessionConfigState {
  schema: SessionConfigSchema;
  values: Record<string, unknown>;
}

export interface SessionConfigValueItem {
  label: string;
  value: string;
  description?: string;
}

export interface SessionCreationFailed {
  error: ErrorInfo;
}

export interface SessionCustomizationRemoved {
  id: string;
}

/** All decisions on one customization; earlier ones are dropped. */
export interface SessionCustomizationToggled {
  enablement: CustomizationEnablement[];
  id: string;
}

export interface SessionCustomizationUpdated {
  customization: Customization;
}

export interface SessionCustomizationsChanged {
  customizations: Customization[];
}

export interface SessionDefaultChatChanged {
  defaultChat?: string;
}

export interface SessionEnablement {
  enabled: boolean;
}

export interface SessionInputNeededRemoved {
  id: string;
}

export interface SessionInputNeededSet {
  request: SessionInputRequest;
}

/** A request for input of a session, mirrored from its chats. The answer goes to the chat. */
export type SessionInputRequest =
  | ({ kind: "chatInput" } & SessionChatInputRequest)
  | ({ kind: "toolConfirmation" } & SessionToolConfirmationRequest)
  | ({ kind: "toolClientExecution" } & SessionToolClientExecutionRequest)
  | ({ kind: "toolAuthentication" } & SessionToolAuthenticationRequest);

export interface SessionIsArchivedChanged {
  isArchived: boolean;
}

export interface SessionIsReadChanged {
  isRead: boolean;
}

export type SessionLifecycle = "creating" | "ready" | "failed";

export interface SessionMcpServerBackgroundRequested {
  id: string;
}

export interface SessionMcpServerStartRequested {
  id: string;
}

/** An absent channel means that there is none any more. */
export interface SessionMcpServerStateChanged {
  id: string;
  state: McpServerState;
  channel?: string;
}

export interface SessionMcpServerStopRequested {
  id: string;
}

/** Replaces the whole `_meta`. */
export interface SessionMetaChanged {
  _meta?: Record<string, unknown>;
}

export interface SessionModelInfo {
  id: string;
  name: string;
  provider: string;
  _meta?: Record<string, unknown>;
  configSchema?: ConfigSchema;
  maxContextWindow?: number;
  maxOutputTokens?: number;
  maxPromptTokens?: number;
  policyState?: PolicyState;
  supportsVision?: boolean;
}

/** The origin of a session that was not created by hand. */
export type SessionOrigin =
  | ({ kind: "automation" } & AutomationSessionOrigin);

export type SessionReady = Record<never, never>;

export interface SessionRemovedParams {
  channel: string;
  session: string;
}

export interface SessionServerToolsChanged {
  tools: ToolDefinition[];
}

/** The state of a session's channel. The conversation is in its chats. */
export interface SessionState {
  activeClients: SessionActiveClient[];
  chats: ChatSummary[];
  lifecycle: SessionLifecycle;
  provider: string;
  /** See `status`. */
  status: number;
  title: string;
  _meta?: Record<string, unknown>;
  activity?: string;
  annotations?: AnnotationsSummary;
  changesets?: Changeset[];
  config?: SessionConfigState;
  creationError?: ErrorInfo;
  customizations?: Customization[];
  defaultChat?: string;
  inputNeeded?: SessionInputRequest[];
  origin?: SessionOrigin;
  project?: ProjectInfo;
  serverTools?: ToolDefinition[];
  workingDirectories?: string[];
}

/** A session's row in the list. */
export interface SessionSummary {
  /** ISO 8601, like every other time of the protocol. */
  createdAt: string;
  modifiedAt: string;
  provider: string;
  resource: string;
  status: number;
  title: string;
  _meta?: Record<string, unknown>;
  activity?: string;
  annotations?: AnnotationsSummary;
  changes?: ChangesSummary;
  chats?: SessionChatSummary[];
  defaultChat?: string;
  origin?: SessionOrigin;
  project?: ProjectInfo;
  workingDirectories?: string[];
}

/** The changed fields of a row; `chats` is always the complete list. */
export interface SessionSummaryChangedParams {
  changes: PartialSessionSummary;
  channel: string;
  session: string;
}

export interface SessionTitleChanged {
  title: string;
}

export interface SessionToolAuthenticationRequest {
  chat: string;
  id: string;
  toolCall: AuthRequiredToolCall;
  turnId: string;
}

export interface SessionToolClientExecutionRequest {
  chat: string;
  clientId: string;
  id: string;
  toolCall: RunningToolCall;
  turnId: string;
}

export interface SessionToolConfirmationRequest {
  chat: string;
  id: string;
  toolCall: ToolCallConfirmation;
  turnId: string;
}

export interface SessionWorkingDirectoryRemoved {
  directory: string;
}

export interface SessionWorkingDirectoryReplaced {
  directory: string;
  replacement: string;
}

export interface SessionWorkingDirectorySet {
  directory: string;
}

export interface SideChatOrigin {
  chat: string;
  turnId: string;
  selection?: SideChatSelection;
}

/** The text that a side chat is about. */
export interface SideChatSelection {
  text: string;
  responsePartId?: string;
}

export interface SideChatSource {
  chat: string;
  turnId: string;
  selection?: SideChatSelection;
}

export interface SimpleMessageAttachment {
  label: string;
  _meta?: Record<string, unknown>;
  displayKind?: string;
  modelRepresentation?: string;
  range?: TextRange;
}

export interface SkillCustomization {
  id: string;
  name: string;
  uri: string;
  _meta?: Record<string, unknown>;
  description?: string;
  disableModelInvocation?: boolean;
  disableUserInvocation?: boolean;
  enabled?: boolean;
  icons?: Icon[];
  range?: TextRange;
}

/** The state of a channel. Actions with a number above `from_seq` come after it. */
export interface Snapshot {
  fromSeq: number;
  resource: string;
  state: SnapshotState;
}

/** The state of any channel. It has no tag on the wire, so it is recognised by the keys that only one state requires. */
export type SnapshotState =
  | RootState
  | SessionState
  | ChatState
  | TerminalState
  | ChangesetState
  | AnnotationsState
  | ResourceWatchState;

/** A plain text, or Markdown. */
export type StringOrMarkdown =
  | string
  | {
    markdown: string;
  };

export interface SubscribeParams {
  channel: string;
  _meta?: Record<string, unknown>;
  delivery?: SubscriptionDelivery;
  view?: SubscribeView;
}

export interface SubscribeResult {
  /** Absent for a channel without state. */
  snapshot?: Snapshot;
}

export interface SubscribeView {
  /** The number of newest turns to send. Absent means all loaded ones. */
  turns?: number;
}

export interface SubscriptionDelivery {
  /** The maximum delay of actions, in order to send fewer of them. Zero means none. */
  maxLatencyMs?: number;
}

export interface SystemNotificationResponsePart {
  content: StringOrMarkdown;
  _meta?: Record<string, unknown>;
}

/** The channels of a host's telemetry. */
export interface TelemetryCapabilities {
  logs?: string;
  metrics?: string;
  traces?: string;
}

export type TerminalAction =
  | ({ type: "terminal/data" } & TerminalData)
  | ({ type: "terminal/input" } & TerminalInput)
  | ({ type: "terminal/resized" } & TerminalResized)
  | ({ type: "terminal/claimed" } & TerminalClaimed)
  | ({ type: "terminal/titleChanged" } & TerminalTitleChanged)
  | ({ type: "terminal/cwdChanged" } & TerminalCwdChanged)
  | ({ type: "terminal/exited" } & TerminalExited)
  | ({ type: "terminal/cleared" } & TerminalCleared)
  | ({ type: "terminal/commandDetectionAvailable" } & TerminalCommandDetectionAvailable)
  | ({ type: "terminal/commandExecuted" } & TerminalCommandExecuted)
  | ({ type: "terminal/commandFinished" } & TerminalCommandFinished);

/** The user of a terminal. The protocol closes this list. */
export type TerminalClaim =
  | ({ kind: "client" } & TerminalClientClaim)
  | ({ kind: "session" } & TerminalSessionClaim);

export interface TerminalClaimed {
  claim: TerminalClaim;
}

export type TerminalCleared = Record<never, never>;

export interface TerminalClientClaim {
  clientId: string;
}

export type TerminalCommandDetectionAvailable = Record<never, never>;

export interface TerminalCommandExecuted {
  commandId: string;
  commandLine: string;
  /** Milliseconds since 1970. */
  timestamp: number;
}

export interface TerminalCommandFinished {
  commandId: string;
  durationMs?: number;
  exitCode?: number;
}

export interface TerminalCommandPart {
  commandId: string;
  commandLine: string;
  isComplete: boolean;
  output: string;
  /** Milliseconds since 1970. */
  timestamp: number;
  durationMs?: number;
  exitCode?: number;
}

/** The result of a command that a tool ran. */
export interface TerminalCommandResult {
  exitCode?: number;
  preview?: string;
  truncated?: boolean;
}

export type TerminalContentPart =
  | ({ type: "unclassified" } & TerminalUnclassifiedPart)
  | ({ type: "command" } & TerminalCommandPart);

export interface TerminalCwdChanged {
  cwd: string;
}

export interface TerminalData {
  data: string;
}

export interface TerminalExited {
  exitCode?: number;
}

/** A terminal's row in the root state. */
export interface TerminalInfo {
  claim: TerminalClaim;
  lifecycle: TerminalLifecycle;
  resource: string;
  title: string;
}

/** Typed input. It changes no state; the process's output does. */
export interface TerminalInput {
  data: string;
}

/** The state of a terminal's process. The protocol closes this list. */
export type TerminalLifecycle =
  | {
    status: "running";
  }
  | {
    status: "exited";
    exitCode?: number;
  };

export interface TerminalResized {
  cols: number;
  rows: number;
}

export interface TerminalSessionClaim {
  chat: string;
  session: string;
  toolCallId?: string;
  turnId?: string;
}

/** The state of a terminal's channel. */
export interface TerminalState {
  claim: TerminalClaim;
  content: TerminalContentPart[];
  lifecycle: TerminalLifecycle;
  title: string;
  cols?: number;
  cwd?: string;
  isPty?: boolean;
  rows?: number;
  supportsCommandDetection?: boolean;
}

export interface TerminalTitleChanged {
  title: string;
}

/** Output that belongs to no known command. */
export interface TerminalUnclassifiedPart {
  value: string;
}

/** Both counts start at zero; `character` counts UTF-16 units. */
export interface TextPosition {
  character: number;
  line: number;
}

export interface TextRange {
  end: TextPosition;
  start: TextPosition;
}

export interface TextSelection {
  range: TextRange;
}

/** A tool's own claims, which are not verified. */
export interface ToolAnnotations {
  destructiveHint?: boolean;
  idempotentHint?: boolean;
  openWorldHint?: boolean;
  readOnlyHint?: boolean;
  title?: string;
}

/** The call waits for a token. */
export interface ToolCallAuthRequired {
  auth: McpAuthRequirement;
  confirmed: ToolCallConfirmationReason;
  displayName: string;
  invocationMessage: StringOrMarkdown;
  toolCallId: string;
  toolName: string;
  _meta?: Record<string, unknown>;
  content?: ToolResultContent[];
  /** Absent if the host itself brings the tool. */
  contributor?: ToolCallContributor;
  intention?: string;
  selectedOption?: ConfirmationOption;
  toolInput?: ToolInput;
}

export type ToolCallCancellationReason = "denied" | "skipped" | "result-denied";

/** The call was not allowed to run, or its result not to be used. */
export interface ToolCallCancelled {
  displayName: string;
  invocationMessage: StringOrMarkdown;
  reason: ToolCallCancellationReason;
  toolCallId: string;
  toolName: string;
  _meta?: Record<string, unknown>;
  /** Absent if the host itself brings the tool. */
  contributor?: ToolCallContributor;
  intention?: string;
  reasonMessage?: StringOrMarkdown;
  selectedOption?: ConfirmationOption;
  toolInput?: ToolInput;
  userSuggestion?: Message;
}

export interface ToolCallClientContributor {
  clientId: string;
}

/** The call has ended, with or without success. */
export interface ToolCallCompleted {
  confirmed: ToolCallConfirmationReason;
  displayName: string;
  invocationMessage: StringOrMarkdown;
  pastTenseMessage: StringOrMarkdown;
  success: boolean;
  toolCallId: string;
  toolName: string;
  _meta?: Record<string, unknown>;
  content?: ToolResultContent[];
  /** Absent if the host itself brings the tool. */
  contributor?: ToolCallContributor;
  error?: ToolCallError;
  intention?: string;
  selectedOption?: ConfirmationOption;
  structuredContent?: Record<string, unknown>;
  toolInput?: ToolInput;
}

/** A tool call that waits for a decision, before or after it runs. */
export type ToolCallConfirmation =
  | ({ status: "pending-confirmation" } & ToolCallPendingConfirmation)
  | ({ status: "pending-result-confirmation" } & ToolCallPendingResultConfirmation);

export type ToolCallConfirmationReason = "not-needed" | "user-action" | "setting";

/** The contributor of a tool, which has to run it. */
export type ToolCallContributor =
  | ({ kind: "client" } & ToolCallClientContributor)
  | ({ kind: "mcp" } & ToolCallMcpContributor);

export interface ToolCallError {
  message: string;
  code?: string;
}

export interface ToolCallMcpContributor {
  customizationId: string;
}

/** The call waits for permission. */
export interface ToolCallPendingConfirmation {
  displayName: string;
  invocationMessage: StringOrMarkdown;
  toolCallId: string;
  toolName: string;
  _meta?: Record<string, unknown>;
  confirmationTitle?: StringOrMarkdown;
  /** Absent if the host itself brings the tool. */
  contributor?: ToolCallContributor;
  editable?: boolean;
  edits?: FileEditCollection;
  intention?: string;
  options?: ConfirmationOption[];
  riskAssessment?: ToolCallRiskAssessment;
  toolInput?: ToolInput;
}

/** The call has run, and its result waits for permission to be used. */
export interface ToolCallPendingResultConfirmation {
  confirmed: ToolCallConfirmationReason;
  displayName: string;
  invocationMessage: StringOrMarkdown;
  pastTenseMessage: StringOrMarkdown;
  success: boolean;
  toolCallId: string;
  toolName: string;
  _meta?: Record<string, unknown>;
  content?: ToolResultContent[];
  /** Absent if the host itself brings the tool. */
  contributor?: ToolCallContributor;
  error?: ToolCallError;
  intention?: string;
  selectedOption?: ConfirmationOption;
  structuredContent?: Record<string, unknown>;
  toolInput?: ToolInput;
}

export interface ToolCallResponsePart {
  toolCall: ToolCallState;
}

/** The result of a tool call. */
export interface ToolCallResult {
  pastTenseMessage: StringOrMarkdown;
  success: boolean;
  content?: ToolResultContent[];
  error?: ToolCallError;
  structuredContent?: Record<string, unknown>;
}

/** The assessed risk of a call. */
export type ToolCallRiskAssessment =
  | ({ status: "loading" } & ToolCallRiskAssessmentLoading)
  | ({ status: "complete" } & ToolCallRiskAssessmentComplete);

export interface ToolCallRiskAssessmentComplete {
  kind: ToolCallRiskAssessmentKind;
  reason: StringOrMarkdown;
  /** From 0, dangerous, to 1, safe. A number as it is written, so that 1 does not become 1.0. */
  safety: number;
}

export type ToolCallRiskAssessmentKind = "judge";

export interface ToolCallRiskAssessmentLoading {
  kind: ToolCallRiskAssessmentKind;
}

/** The call runs. */
export interface ToolCallRunning {
  confirmed: ToolCallConfirmationReason;
  displayName: string;
  invocationMessage: StringOrMarkdown;
  toolCallId: string;
  toolName: string;
  _meta?: Record<string, unknown>;
  content?: ToolResultContent[];
  /** Absent if the host itself brings the tool. */
  contributor?: ToolCallContributor;
  intention?: string;
  selectedOption?: ConfirmationOption;
  toolInput?: ToolInput;
}

export type ToolCallState =
  | ({ status: "streaming" } & ToolCallStreaming)
  | ({ status: "pending-confirmation" } & ToolCallPendingConfirmation)
  | ({ status: "running" } & ToolCallRunning)
  | ({ status: "auth-required" } & ToolCallAuthRequired)
  | ({ status: "pending-result-confirmation" } & ToolCallPendingResultConfirmation)
  | ({ status: "completed" } & ToolCallCompleted)
  | ({ status: "cancelled" } & ToolCallCancelled);

/** The input is still being streamed. */
export interface ToolCallStreaming {
  displayName: string;
  toolCallId: string;
  toolName: string;
  _meta?: Record<string, unknown>;
  /** Absent if the host itself brings the tool. */
  contributor?: ToolCallContributor;
  intention?: string;
  invocationMessage?: StringOrMarkdown;
  partialInput?: string;
}

export interface ToolChatOrigin {
  chat: string;
  toolCallId: string;
}

export interface ToolDefinition {
  name: string;
  _meta?: Record<string, unknown>;
  annotations?: ToolAnnotations;
  description?: string;
  /** A JSON schema. */
  inputSchema?: Record<string, unknown>;
  /** A JSON schema. */
  outputSchema?: Record<string, unknown>;
  title?: string;
}

/** A tool's input: inline, or by reference. */
export type ToolInput =
  | string
  | ContentRef;

export type ToolResultContent =
  | ({ type: "text" } & ToolResultTextContent)
  | ({ type: "embeddedResource" } & ToolResultEmbeddedResourceContent)
  | ({ type: "resource" } & ContentRef)
  | ({ type: "fileEdit" } & FileEdit)
  | ({ type: "terminal" } & ToolResultTerminalContent)
  | ({ type: "subagent" } & ToolResultSubagentContent);

export interface ToolResultEmbeddedResourceContent {
  contentType: string;
  /** Base64. */
  data: string;
}

export interface ToolResultSubagentContent {
  resource: string;
  title: string;
  agentName?: string;
  description?: string;
}

export interface ToolResultTerminalContent {
  resource: string;
  title: string;
  isPty?: boolean;
  result?: TerminalCommandResult;
}

export interface ToolResultTextContent {
  text: string;
}

/** A finished turn. */
export interface Turn {
  id: string;
  message: Message;
  responseParts: ResponsePart[];
  state: TurnState;
  /** Milliseconds. Signed, because the side that ended the turn measured by its own clock. */
  duration?: number;
  startedAt?: string;
  usage?: UsageInfo;
}

export type TurnState = "complete" | "cancelled" | "error";

export interface UnsubscribeParams {
  channel: string;
}

export interface UnsupportedProtocolVersionData {
  supportedVersions: string[];
}

export interface UsageInfo {
  _meta?: Record<string, unknown>;
  cacheReadTokens?: number;
  inputTokens?: number;
  model?: string;
  outputTokens?: number;
}

/** The user created it. It has no further data. */
export type UserChatOrigin = Record<never, never>;

export interface WorkspaceEnablement {
  enabled: boolean;
  uri: string;
}
