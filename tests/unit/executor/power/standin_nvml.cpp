// SPDX-License-Identifier: Apache-2.0
// Two GPUs in the place of NVML, declared from NVIDIA's documentation and not from our own header. They live in the folder
// that RHEO_STANDIN names, so that all processes see the same devices: `table` holds their clocks and what they draw
// (MHz W), `behaviour` what goes wrong (below), `log` every change of a clock, `device-<k>` the clock and the counter.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

namespace {

std::string folder()
{
    char const* const given = std::getenv("RHEO_STANDIN");
    return given != nullptr ? given : ".";
}

/// permission 0: nobody may; permission_after n: only the first n changes; lost 1; reasons n; counter_ms n: the counter is
/// updated so rarely; switch_ms n: how long a change takes; now_ms n: the time, else the machine's.
long behaviour(std::string const& key, long otherwise)
{
    std::ifstream file(folder() + "/behaviour");
    std::string name;
    for (long value = 0; file >> name >> value;) {
        if (name == key) {
            return value;
        }
    }
    return otherwise;
}

std::map<unsigned, double> table()
{
    std::map<unsigned, double> rows;
    std::ifstream file(folder() + "/table");
    unsigned clock = 0;
    for (double power = 0; file >> clock >> power;) {
        rows[clock] = power;
    }
    return rows;
}

long now_ms()
{
    timespec now{};
    clock_gettime(CLOCK_MONOTONIC, &now);
    return behaviour("now_ms", now.tv_sec * 1000 + now.tv_nsec / 1000000);
}

/// The state of a device, held by one process at a time.
struct device {
    explicit device(int number) : number_{number}, file_{::open((folder() + "/device-" + std::to_string(number)).c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600)}
    {
        ::flock(file_, LOCK_EX);
        char text[128] = {};
        if (::pread(file_, text, sizeof text - 1, 0) <= 0 || std::sscanf(text, "%u %lf %ld %ld", &locked, &millijoules, &since_ms, &changes) != 4) {
            since_ms = now_ms();
        }
    }
    ~device()
    {
        char text[128];
        auto const length = std::snprintf(text, sizeof text, "%u %.9g %ld %ld ", locked, millijoules, since_ms, changes);
        [[maybe_unused]] auto const written = ::pwrite(file_, text, static_cast<std::size_t>(length), 0);
        ::close(file_);
    }
    device(device const&) = delete;
    device& operator=(device const&) = delete;

    unsigned clock() const { return locked != 0 ? locked : table().rbegin()->first; }
    double counter() const
    {
        auto const update = behaviour("counter_ms", 1);
        auto const at = now_ms() / update * update;
        return at > since_ms ? millijoules + table().at(clock()) * static_cast<double>(at - since_ms) : millijoules;
    }

    int change(unsigned to, std::string const& what)
    {
        if (auto const wait = behaviour("switch_ms", 0); wait > 0) {
            ::usleep(static_cast<useconds_t>(wait * 1000));
        }
        bool const may = behaviour("permission", 1) != 0 && changes < behaviour("permission_after", 1L << 30);
        std::ofstream(folder() + "/log", std::ios::app)
            << (may ? what : "refused") + " " + std::to_string(number_) + (to != 0 ? " " + std::to_string(to) : "") + "\n";
        if (!may) {
            return 4;
        }
        millijoules += table().at(clock()) * static_cast<double>(now_ms() - since_ms);
        since_ms = now_ms();
        locked = to;
        ++changes;
        return 0;
    }

    unsigned locked = 0;  ///< 0: not
    double millijoules = 5e6;
    long since_ms = 0;
    long changes = 0;

private:
    int number_;
    int file_;
};

int number_of(void* handle) { return static_cast<int>(reinterpret_cast<std::intptr_t>(handle)) - 1; }
int lost() { return behaviour("lost", 0) != 0 ? 15 : 0; }

int fill(std::vector<unsigned> const& values, unsigned* count, unsigned* into)
{
    bool const fits = into != nullptr && *count >= values.size();
    for (std::size_t k = 0; fits && k < values.size(); ++k) {
        into[k] = values[k];
    }
    *count = static_cast<unsigned>(values.size());
    return fits ? 0 : 7;
}

int put_text(std::string const& text, char* into, unsigned room)
{
    std::snprintf(into, room, "%s", text.c_str());
    return text.size() < room ? 0 : 7;
}

}  // namespace

extern "C" {

int nvmlInit_v2() { return behaviour("driver", 1) != 0 ? 0 : 9; }
int nvmlShutdown() { return 0; }
char const* nvmlErrorString(int code)
{
    return code == 4 ? "Insufficient Permissions" : code == 6 ? "Not Found" : code == 9 ? "Driver Not Loaded" : code == 15 ? "GPU is lost" : "Unknown Error";
}

int nvmlDeviceGetCount_v2(unsigned* count) { return *count = 2, 0; }
int nvmlDeviceGetHandleByIndex_v2(unsigned number, void** handle)
{
    *handle = reinterpret_cast<void*>(static_cast<std::intptr_t>(number) + 1);
    return number < 2 ? 0 : 6;
}
int nvmlDeviceGetHandleByUUID(char const* uuid, void** handle)
{
    return std::strncmp(uuid, "GPU-standin-", 12) == 0 ? nvmlDeviceGetHandleByIndex_v2(static_cast<unsigned>(std::atoi(uuid + 12)), handle) : 6;
}
int nvmlDeviceGetHandleByPciBusId_v2(char const* id, void** handle)
{
    unsigned bus = 0;
    return std::sscanf(id, "%*x:%x:00.0", &bus) == 1 ? nvmlDeviceGetHandleByIndex_v2(bus - 1, handle) : 6;
}
int nvmlDeviceGetName(void*, char* into, unsigned room) { return put_text("Stand-in A100", into, room); }
int nvmlDeviceGetUUID(void* handle, char* into, unsigned room) { return put_text("GPU-standin-" + std::to_string(number_of(handle)), into, room); }

struct pci_information {
    char legacy[16];
    unsigned domain, bus, device, pci_device, pci_subsystem;
    char id[32];
};
int nvmlDeviceGetPciInfo_v3(void* handle, pci_information* place)
{
    *place = {};
    place->bus = static_cast<unsigned>(number_of(handle)) + 1;
    return 0;
}

int nvmlDeviceGetSupportedMemoryClocks(void*, unsigned* count, unsigned* clocks) { return fill({1215, 405}, count, clocks); }
int nvmlDeviceGetSupportedGraphicsClocks(void*, unsigned memory, unsigned* count, unsigned* clocks)
{
    std::vector<unsigned> values;
    for (auto const& [clock, power] : table()) {
        if (memory == 1215 || values.empty()) {
            values.push_back(clock);
        }
    }
    return fill(values, count, clocks);
}
int nvmlDeviceSetGpuLockedClocks(void* handle, unsigned least, unsigned most)
{
    return lost() != 0 ? lost() : least != most || !table().contains(most) ? 2 : device{number_of(handle)}.change(most, "set");
}
int nvmlDeviceResetGpuLockedClocks(void* handle) { return lost() != 0 ? lost() : device{number_of(handle)}.change(0, "reset"); }
int nvmlDeviceGetClockInfo(void* handle, int kind, unsigned* clock)
{
    *clock = device{number_of(handle)}.clock();
    return kind == 0 ? lost() : 2;
}

#ifdef RHEO_STANDIN_OLDER_DRIVER
int nvmlDeviceGetCurrentClocksThrottleReasons(void*, unsigned long long* reasons)
#else
int nvmlDeviceGetTotalEnergyConsumption(void* handle, unsigned long long* millijoules)
{
    *millijoules = static_cast<unsigned long long>(device{number_of(handle)}.counter());
    return lost();
}
int nvmlDeviceGetCurrentClocksEventReasons(void*, unsigned long long* reasons)
#endif
{
    *reasons = static_cast<unsigned long long>(behaviour("reasons", 0));
    return lost();
}

}  // extern "C"
