// Package verdict decides how the facts of a run become a verdict: pass, violation or unknown.
package verdict
