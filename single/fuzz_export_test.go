package single

// Decode types what a script has returned, as a go-redis client has read it.
func Decode(value any) (Reply, error) {
	answer := answerIs(value)
	if answer.err != nil {
		return Reply{}, answer.err
	}
	return decode(&Request{Op: Inspect}, &answer)
}
