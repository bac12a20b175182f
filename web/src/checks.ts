/** The security checks of the page by name. `crates/checks` lists them with the test that each of them is for. */
export type CheckName = 'page-address' | 'page-text' | 'page-markdown';

/** The check that the build for testing the tests leaves out; empty in every other build. */
declare const __GROVE_CHECK_OFF__: string;

/** Says whether a check is made, which only a build for testing the tests can change. */
export function isEnforced(check: CheckName): boolean {
  return check !== __GROVE_CHECK_OFF__;
}
