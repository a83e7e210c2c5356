#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
exec "$(dirname "${BASH_SOURCE[0]}")/../lib/page.py" README.md
