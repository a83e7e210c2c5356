// Control planes that this project did not write, for the tests of N4; a module of their own so that the product's go.mod names
// only what the product uses.
module isthmus/test/peers

go 1.24.0

require (
	github.com/free5gc/pfcp v1.0.7
	github.com/omec-project/pfcpsim v1.3.1
)

require (
	github.com/c-robinson/iplib v1.0.8 // indirect
	github.com/free5gc/tlv v1.0.2 // indirect
	github.com/jessevdk/go-flags v1.6.1 // indirect
	github.com/pborman/getopt/v2 v2.1.0 // indirect
	github.com/sirupsen/logrus v1.8.1 // indirect
	github.com/tim-ywliu/nested-logrus-formatter v1.3.2 // indirect
	github.com/wmnsk/go-pfcp v0.0.24 // indirect
	go.uber.org/multierr v1.11.0 // indirect
	go.uber.org/zap v1.27.0 // indirect
	golang.org/x/net v0.40.0 // indirect
	golang.org/x/sys v0.33.0 // indirect
	golang.org/x/text v0.25.0 // indirect
	google.golang.org/genproto/googleapis/rpc v0.0.0-20250528174236-200df99c418a // indirect
	google.golang.org/grpc v1.72.2 // indirect
	google.golang.org/protobuf v1.36.6 // indirect
)
