// SPDX-License-Identifier: Apache-2.0
#include "kernels/blas.hpp"

#include <dlfcn.h>

#include <atomic>
#include <cstdlib>
#include <mutex>

#include "rheo/units/expects.hpp"

namespace rheo::inline v0 {

namespace {

// The values of CBLAS's enumerations, which are the same in every implementation.
constexpr int row_major = 101;
constexpr int plain = 111;
constexpr int transpose = 112;

using sgemm_function = void (*)(int, int, int, int, int, int, float, float const*, int, float const*, int, float, float*, int);

struct library {
    std::atomic<sgemm_function> sgemm{nullptr};
    char* (*core_name)() = nullptr;
    char* (*config)() = nullptr;
    std::mutex mutex;
};

library& the_library()
{
    static library only;
    return only;
}

constexpr char const* missing = "OpenBLAS cannot be opened: install it (Debian: libopenblas0-pthread) or name its folder in LD_LIBRARY_PATH";

/// Sets a variable for the time of an opening, unless the user has set it.
class variable_while_opening {
public:
    variable_while_opening(char const* name, std::string const& value) : name_{name}
    {
        if (value.empty() || std::getenv(name) != nullptr) {
            return;
        }
        ::setenv(name, value.c_str(), 1);
        ours_ = true;
    }
    ~variable_while_opening()
    {
        if (ours_) {
            ::unsetenv(name_);
        }
    }
    variable_while_opening(variable_while_opening const&) = delete;
    variable_while_opening& operator=(variable_while_opening const&) = delete;

private:
    char const* name_;
    bool ours_ = false;
};

void open_once(library& lib, std::string const& core_type)
{
    variable_while_opening const core{"OPENBLAS_CORETYPE", core_type};
    variable_while_opening const threads{"OPENBLAS_NUM_THREADS", "1"};  // else its constructor starts its own
    void* handle = nullptr;
    for (char const* name : {
#ifdef RHEO_OPENBLAS_FILE
             RHEO_OPENBLAS_FILE,
#endif
             "libopenblas.so.0", "libopenblas.so", "libopenblasp.so.0", "libopenblas.dylib"}) {
        handle = ::dlopen(name, RTLD_NOW | RTLD_LOCAL);
        if (handle != nullptr) {
            break;
        }
    }
    if (handle == nullptr) {
        throw blas_error{missing};
    }
    auto const sgemm = reinterpret_cast<sgemm_function>(::dlsym(handle, "cblas_sgemm"));
    auto const set_threads = reinterpret_cast<void (*)(int)>(::dlsym(handle, "openblas_set_num_threads"));
    if (sgemm == nullptr || set_threads == nullptr) {
        ::dlclose(handle);
        throw blas_error{
            "the libopenblas that was found lacks cblas_sgemm or openblas_set_num_threads: install OpenBLAS "
            "(Debian: libopenblas0-pthread)"};
    }
    set_threads(1);
    lib.core_name = reinterpret_cast<char* (*)()>(::dlsym(handle, "openblas_get_corename"));
    lib.config = reinterpret_cast<char* (*)()>(::dlsym(handle, "openblas_get_config"));
    lib.sgemm.store(sgemm, std::memory_order_release);
}

/// Opens OpenBLAS unless it is open. Returns it.
library& opened(std::string const& core_type)
{
    auto& lib = the_library();
    if (lib.sgemm.load(std::memory_order_acquire) == nullptr) {
        std::lock_guard const lock{lib.mutex};
        if (lib.sgemm.load(std::memory_order_relaxed) == nullptr) {
            open_once(lib, core_type);
        }
    }
    return lib;
}

int as_int(std::int64_t value)
{
    expects(value >= 0 && value <= 0x7fffffff, "a matrix dimension does not fit the BLAS");
    return static_cast<int>(value);
}

}  // namespace

std::string_view blas_core_type_for_this_cpu()
{
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx512f") != 0 && __builtin_cpu_supports("avx512dq") != 0 && __builtin_cpu_supports("avx512bw") != 0 &&
        __builtin_cpu_supports("avx512vl") != 0) {
        return "SkylakeX";
    }
    if (__builtin_cpu_supports("avx2") != 0 && __builtin_cpu_supports("fma") != 0) {
        return "Haswell";
    }
#endif
    return "";
}

void open_blas(std::string_view core_type)
{
    opened(std::string{core_type});
    if (!core_type.empty() && blas_core_type() != core_type) {
        throw blas_error{"OpenBLAS runs with kernel type " + blas_core_type() + ", not " + std::string{core_type} +
                         ": it was loaded before, or OPENBLAS_CORETYPE says so, or this build has one type only"};
    }
}

std::string blas_core_type()
{
    auto const& lib = opened(std::string{blas_core_type_for_this_cpu()});
    return lib.core_name == nullptr ? "unknown" : lib.core_name();
}

std::string blas_description()
{
    try {
        auto const& lib = opened(std::string{blas_core_type_for_this_cpu()});
        std::string const config = lib.config == nullptr ? "OpenBLAS" : lib.config();
        return config + ", kernel type " + blas_core_type() + ", one thread";
    } catch (blas_error const& error) {
        return error.what();
    }
}

void sgemm(sgemm_arguments const& p)
{
    auto const function = opened(std::string{blas_core_type_for_this_cpu()}).sgemm.load(std::memory_order_relaxed);
    function(row_major, p.a_is == transposed::yes ? transpose : plain, p.b_is == transposed::yes ? transpose : plain, as_int(p.m), as_int(p.n), as_int(p.k),
             p.alpha, p.a, as_int(p.a_row), p.b, as_int(p.b_row), p.beta, p.c, as_int(p.c_row));
}

}  // namespace rheo::inline v0
