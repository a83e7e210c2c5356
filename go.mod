module isthmus

go 1.24.13

require (
	github.com/gaissmai/bart v0.30.0
	github.com/gopacket/gopacket v1.3.1
	github.com/prometheus/client_golang v1.23.0
	github.com/santhosh-tekuri/jsonschema/v6 v6.0.2
	github.com/spf13/cobra v1.10.2
	github.com/vishvananda/netlink v1.3.1
	github.com/vishvananda/netns v0.0.5
	go.yaml.in/yaml/v3 v3.0.4
	golang.org/x/crypto v0.48.0
	golang.org/x/sys v0.41.0
)

require golang.org/x/term v0.40.0

require (
	github.com/insomniacslk/dhcp v0.0.0-20260220084031-5adc3eb26f91
	github.com/josharian/native v1.1.0 // indirect
	github.com/pierrec/lz4/v4 v4.1.14 // indirect
	github.com/u-root/uio v0.0.0-20230220225925-ffce2a382923 // indirect
)

require (
	github.com/beorn7/perks v1.0.1 // indirect
	github.com/cespare/xxhash/v2 v2.3.0 // indirect
	github.com/inconshreveable/mousetrap v1.1.0 // indirect
	github.com/kr/text v0.2.0 // indirect
	github.com/munnerz/goautoneg v0.0.0-20191010083416-a7dc8b61c822 // indirect
	github.com/prometheus/client_model v0.6.2
	github.com/prometheus/common v0.65.0 // indirect
	github.com/prometheus/procfs v0.16.1
	github.com/spf13/pflag v1.0.10
	github.com/wmnsk/go-pfcp v0.0.24
	golang.org/x/text v0.34.0 // indirect
	google.golang.org/protobuf v1.36.6 // indirect
)
