package nl

// The tests need netns and testenv, and testenv needs nl; so they are in nl_test,
// and get what they need from inside here.
var (
	ParseNeighbor = parseNeighbor
	ParseEvent    = parseEvent
	SubscribeTiny = subscribe
)

func Dump(read func() ([]int, error)) ([]int, error) { return dump("list", "numbers", read) }
