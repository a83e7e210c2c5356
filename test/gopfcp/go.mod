// The codec of PFCP against go-pfcp; a module of its own so that the product's go.mod names only what the product uses.
module isthmus/test/gopfcp

go 1.26.0

require (
	github.com/wmnsk/go-pfcp v0.0.24
	isthmus v0.0.0
)

require golang.org/x/sys v0.50.0 // indirect

replace isthmus => ../..
