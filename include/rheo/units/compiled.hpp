#pragma once
// SPDX-License-Identifier: Apache-2.0

// RHEO_COMPILED_IN: a function that many source files call, compiled once for all of them. All of rheo is in headers, and a program that includes some
// needs nothing else. A program of many source files links rheo::compiled, which defines RHEO_COMPILED: these functions are then `extern template`, and the
// library of that name has them, a source file per folder of include/rheo. rheo's own build takes half the time by it.

#ifdef RHEO_COMPILED

#define RHEO_COMPILED_IN(folder, ...) RHEO_INSTANCE_IN_##folder template __VA_ARGS__

// The source file of a folder defines the folder's macro as nothing.
#ifndef RHEO_INSTANCE_IN_energy
#define RHEO_INSTANCE_IN_energy extern
#endif
#ifndef RHEO_INSTANCE_IN_model
#define RHEO_INSTANCE_IN_model extern
#endif
#ifndef RHEO_INSTANCE_IN_partition
#define RHEO_INSTANCE_IN_partition extern
#endif
#ifndef RHEO_INSTANCE_IN_pipeline
#define RHEO_INSTANCE_IN_pipeline extern
#endif
#ifndef RHEO_INSTANCE_IN_plan
#define RHEO_INSTANCE_IN_plan extern
#endif
#ifndef RHEO_INSTANCE_IN_planner
#define RHEO_INSTANCE_IN_planner extern
#endif
#ifndef RHEO_INSTANCE_IN_recover
#define RHEO_INSTANCE_IN_recover extern
#endif
#ifndef RHEO_INSTANCE_IN_reshard
#define RHEO_INSTANCE_IN_reshard extern
#endif
#ifndef RHEO_INSTANCE_IN_schedule
#define RHEO_INSTANCE_IN_schedule extern
#endif
#ifndef RHEO_INSTANCE_IN_tensor
#define RHEO_INSTANCE_IN_tensor extern
#endif

#else

#define RHEO_COMPILED_IN(folder, ...) static_assert(true)

#endif
