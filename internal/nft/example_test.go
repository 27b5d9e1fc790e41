package nft_test

import (
	"fmt"

	"github.com/cnikit/cnikit/internal/nft"
)

// An object prints itself in the words of nft(8).
func Example() {
	fmt.Println(nft.Object{Kind: nft.Table, Family: "inet", Table: "left", Name: "left"})
	fmt.Println(nft.Object{Kind: nft.Rule, Family: "inet", Table: "left", Name: "forward", Handle: 5, Detail: "meta cmp counter"})
	fmt.Println(nft.Object{Kind: nft.Element, Family: "inet", Table: "left", Name: "members", Detail: "0a000001"})
	// Output:
	// table inet left
	// rule inet left forward handle 5 meta cmp counter
	// element inet left members 0a000001
}
