/** The shapes of Grove’s own requests for tokens, agents, hosts, rules and settings (`docs/protocol.md`), which are not generated. */

export interface TokenRow {
  name: string;
  scopes: string[];
  /** Milliseconds since 1970; absent for the host’s own. */
  createdAt?: number;
  expiresAt?: number;
}

export interface PairingCode {
  secret: string;
  expiresInMs: number;
}

export interface LoginMethod {
  id: string;
  name: string;
  description?: string;
  /** The command for a terminal of the host’s machine, if the agent cannot log in by itself. */
  command?: string;
}

export interface AgentRow {
  id: string;
  name: string;
  description?: string;
  availability: 'built-in' | 'installed' | 'missing' | 'disabled';
  installed: boolean;
  version?: string;
  latest?: string;
  outdated: boolean;
  command: string[];
  installedBy?: string;
  install?: { command: string; kind: string; possible: boolean; reason?: string };
  login?: { hint?: string; methods?: LoginMethod[] };
  models?: string[];
  isDefault: boolean;
  source: 'built-in' | 'catalog' | 'settings';
  lookedFor?: string[];
  notes?: string[];
  website?: string;
}

export interface AgentList {
  agents: AgentRow[];
  catalogDate: string;
}

export interface InstallPlan {
  id: string;
  name: string;
  version: string;
  commands: string[];
}

export interface Installation {
  id: string;
  version: string;
  state: 'running' | 'done' | 'failed' | 'cancelled';
  /** The lines after those that were asked for. */
  lines: string[];
  lineCount: number;
  error?: string;
}

export interface HostRow {
  name: string;
  address?: string;
  state: 'ready' | 'connecting' | 'away' | 'incompatible' | 'unusable' | 'unknown';
  reason?: string;
  program?: string;
  version?: string;
  sessions?: number;
  seenAt?: number;
  pin?: string;
  hasToken: boolean;
}

export interface NewHost {
  name: string;
  address: string;
  token?: string;
  pin?: string;
  unchecked?: boolean;
}

export interface AddedHost {
  added: boolean;
  /** The certificate that a person has to compare first. */
  certificate?: string;
  host?: HostRow;
  warning?: string;
}

export type Verdict = 'allow' | 'ask' | 'deny';

export interface RuleRow {
  text: string;
  toml: string;
  verdict: Verdict;
  kinds: string[];
  patterns: string[];
  agents?: string[];
  reason?: string;
  source?: 'settings' | 'repository';
  file?: string;
  line?: number;
}

export interface RuleList {
  file: string;
  files: { path: string; trusted: boolean; rules: number; problem?: string }[];
  rules: RuleRow[];
}

/** A request that an agent might make. */
export type RuleSubject =
  | { kind: 'shell'; command: string }
  | { kind: 'read' | 'edit'; path: string }
  | { kind: 'fetch'; url: string }
  | { kind: 'mcp'; tool: string };

export interface RuleVerdict {
  verdict: Verdict;
  rule?: RuleRow;
  why?: string;
}

export interface RuleDifference {
  verdict: Verdict;
  rule?: RuleRow;
  answer: 'approved' | 'denied';
  agent: string;
  kind?: string;
  subject: string;
  directory?: string;
  session: string;
  source: string;
  at: number;
}

export interface Backtest {
  sinceMs: number;
  requests: number;
  sources: Record<string, number>;
  allowed: number;
  denied: number;
  asked: number;
  agreed: number;
  differed: number;
  differences: RuleDifference[];
  nextCursor?: string;
}

export interface RuleSuggestion {
  rule: RuleRow;
  answers: number;
}

export interface SettingRow {
  name: string;
  value: unknown;
  source: 'default' | 'file' | 'environment' | 'flag';
  sourceName?: string;
}

export interface SettingList {
  configFile: string;
  configFileExists: boolean;
  settings: SettingRow[];
}
