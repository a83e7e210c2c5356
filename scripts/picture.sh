#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Makes docs/page-light.webp and docs/page-dark.webp, the live page in README: an access gateway with 1,000 homes and
# 40,000 packets a second, after four minutes, in a browser without a window. Wants built programs and Go.
# shellcheck source=test/lib/both.sh
. "$(dirname "${BASH_SOURCE[0]}")/../test/lib/both.sh"
address=127.0.0.1:$(python3 -c 'import socket
s = socket.socket()
s.bind(("127.0.0.1", 0))
print(s.getsockname()[1])')
isthmus bench agf-symmetric --link synth --print-config >"$dir/isthmus.yaml"
sed -i "s|^control:.*|control: {metrics: 'off', page: true, \\
api: {listen: ['$address'], tls: 'off', anonymous: read}}|" "$dir/isthmus.yaml"
start_dp
"$bin/isthmus" run -c "$dir/isthmus.yaml" --dp-socket "$dir/dp.sock" --no-spawn >>"$dir/cp.log" 2>&1 &
cp=$!
isthmus status --wait 120s >/dev/null
isthmus stream load agf-symmetric --rate 20000 >/dev/null
isthmus stream start
sleep 240
ARTIFACTS=$dir PICTURE_OF=http://$address/ go test -vet=off -count 1 -run TestBrowserPicture ./controlplane/page
cp "$dir"/page-{light,dark}.webp docs
ls -l docs/page-*.webp
