// Exit ends at once, with the code that its first argument names or else 0: a server that never comes up.
package main

import (
	"fmt"
	"os"
	"strconv"
)

func main() {
	code := 0
	if len(os.Args) > 1 {
		code, _ = strconv.Atoi(os.Args[1])
	}
	fmt.Printf("ending with %d\n", code)
	os.Exit(code)
}
