#pragma once
// SPDX-License-Identifier: Apache-2.0

// Three nodes of two slow devices, as a file: what commands that simulate are tried on.

namespace small_cluster {

constexpr auto text = R"(schema = 1
[device]
compute_tflops = 0.002
memory_rate_gb_per_s = 10.0
memory_gib = 1.0
computing_w = 30.0
waiting_w = 10.0
[[level]]
name = "node"
members = 2
topology = "full"
latency_us = 2.0
rate_gb_per_s = 10.0
[[level]]
name = "rack"
members = 3
topology = "switch"
latency_us = 10.0
rate_gb_per_s = 1.0
)";

}  // namespace small_cluster
