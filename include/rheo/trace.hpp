#pragma once
// SPDX-License-Identifier: Apache-2.0

// The record of a run: one event type, JSON lines, Chrome trace, Chakra execution traces, pictures.

#include "rheo/trace/chakra/check_traces.hpp"
#include "rheo/trace/chakra/dependencies.hpp"
#include "rheo/trace/chakra/hang.hpp"
#include "rheo/trace/chakra/lenient.hpp"
#include "rheo/trace/chakra/play.hpp"
#include "rheo/trace/chakra/rank_program.hpp"
#include "rheo/trace/chakra/read_rank.hpp"
#include "rheo/trace/chakra/reader.hpp"
#include "rheo/trace/chakra/writer.hpp"
#include "rheo/trace/chrome.hpp"
#include "rheo/trace/event.hpp"
#include "rheo/trace/json_lines.hpp"
#include "rheo/trace/message_flow.hpp"
#include "rheo/trace/svg.hpp"
