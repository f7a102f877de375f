// SPDX-License-Identifier: Apache-2.0
// A driver of CUDA without a device: whatever the toolkit names succeeds and does nothing. There are no devices, and a kernel that is loaded is a handle.

#define RHEO_NOTHING(name) \
    extern "C" int name() { return 0; }
#include "driver_names.inc"  // but for those below
#undef RHEO_NOTHING

namespace {
int loaded;
constexpr int no_device = 100;

int handle(void** to)
{
    *to = &loaded;
    return 0;
}
}  // namespace

extern "C" {

int cuInit(unsigned) { return no_device; }
int cuGetExportTable(void const**, void const*) { return no_device; }
int cuDeviceGetCount(int* count)
{
    *count = 0;
    return 0;
}
int cuDriverGetVersion(int* version)
{
    *version = 13000;
    return 0;
}
int cuGetErrorString(int, char const** text)
{
    *text = "there is no device";
    return 0;
}
int cuLibraryLoadData(void** library) { return handle(library); }
int cuLibraryGetKernel(void** kernel) { return handle(kernel); }

}  // extern "C"
