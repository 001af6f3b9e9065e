// Package hazards has only tests. Each shows that the library survives one hazard of locks over several masters.
// docs/evidence/hazards.md numbers the hazards and lists the tests of each. Most tests of a hazard are in the package
// that handles it; here are those that concern several.
package hazards
