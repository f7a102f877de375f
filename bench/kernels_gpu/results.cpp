// SPDX-License-Identifier: Apache-2.0
#include "results.hpp"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <ctime>

#include "device_memory.hpp"
#include "energy.hpp"
#include "kernels/cuda/product.hpp"

namespace bench {

namespace {

/// The rate of a square product, the largest of some sizes.
double product_rate(dtype element, options const& asked, auto const& seconds_of)
{
    cuda::products by;
    memory<char> const bytes{cuda::workspace::counter_bytes + cuda::products::workspace_bytes};
    auto const scratch = workspace_of(bytes);
    double best = 0;
    for (std::int64_t const n : asked.tiny() ? std::vector<std::int64_t>{16} : std::vector<std::int64_t>{4096, 8192}) {
        // numbers as they come: zeros would be cheaper, for the clocks of a device follow its power
        auto const size = n * n * (element == dtype::bf16 ? 2 : 4);
        auto const left =
            element == dtype::bf16 ? std::pair{numbers<bfloat16>(n * n), memory<float>{0}} : std::pair{memory<bfloat16>{0}, numbers<float>(n * n)};
        memory<char> const result{size};
        void const* const operand = element == dtype::bf16 ? static_cast<void const*>(left.first.data()) : left.second.data();
        double const seconds = seconds_of([&] {
            by.multiply({}, scratch, {.rows = n, .columns = n, .terms = n, .element = element, .result = element},
                        {.left = operand, .right = operand, .result = result.data()});
        });
        best = std::max(best, 2.0 * static_cast<double>(n) * static_cast<double>(n) * static_cast<double>(n) / std::max(seconds, 1e-9));
    }
    return best;
}

std::string today()
{
    std::time_t const now = std::chrono::system_clock::to_time_t(std::chrono::system_clock::now());
    char text[32];
    return {text, std::strftime(text, sizeof text, "%Y-%m-%d %H:%M UTC", std::gmtime(&now))};
}

template <class... Values>
std::string formatted(char const* form, Values... values)
{
    char text[512];
    std::snprintf(text, sizeof text, form, values...);
    return text;
}

}  // namespace

results::results(options const& asked) : asked_{asked}
{
    cudaDeviceProp properties{};
    check(cudaGetDeviceProperties(&properties, 0), "cudaGetDeviceProperties");
    device_ = properties.name;
    energy_ = std::make_unique<energy_reader>(asked.nvml);
    auto const half = static_cast<std::size_t>(asked.mib * 1048576 / 2);
    {
        memory<char> const from{static_cast<std::int64_t>(half)}, to{static_cast<std::int64_t>(half)};
        double const seconds = seconds_of([&] { check(cudaMemcpyAsync(to.data(), from.data(), half, cudaMemcpyDeviceToDevice, nullptr), "cudaMemcpyAsync"); });
        copy_ = 2.0 * static_cast<double>(half) / std::max(seconds, 1e-9);
    }
    auto const timed = [this](std::function<void()> const& call) { return seconds_of(call); };
    peak_["bf16"] = product_rate(dtype::bf16, asked, timed);
    peak_["fp32"] = product_rate(dtype::f32, asked, timed);
    if (asked.json) {
        std::printf("%s\n", heading().c_str());
    } else {
        std::printf("%s: a copy moves %.1f GB/s; a product makes %.1f Tflop/s in bf16, %.1f in fp32. Energy: %s\n\n%-34s %-5s %-28s %10s %9s %9s %7s %10s\n",
                    device_.c_str(), copy_ * 1e-9, peak_["bf16"] * 1e-12, peak_["fp32"] * 1e-12, energy_->message().c_str(), "kernel", "type", "shape", "us",
                    "GB/s", "Tflop/s", "share", "uJ/token");
    }
}

results::~results() = default;

double results::seconds_of(std::function<void()> const& call) const
{
    int const calls = asked_.tiny() ? 1 : 10;  // between two events, so that the start of one counts for a tenth
    cudaEvent_t begin = nullptr;
    cudaEvent_t end = nullptr;
    check(cudaEventCreate(&begin), "cudaEventCreate");
    check(cudaEventCreate(&end), "cudaEventCreate");
    std::vector<double> times;
    for (int i = -std::min(3, asked_.repeats); i < asked_.repeats; ++i) {  // some to warm up
        check(cudaEventRecord(begin), "cudaEventRecord");
        for (int k = 0; k < calls; ++k) {
            call();
        }
        check(cudaEventRecord(end), "cudaEventRecord");
        check(cudaEventSynchronize(end), "cudaEventSynchronize");
        float milliseconds = 0;
        check(cudaEventElapsedTime(&milliseconds, begin, end), "cudaEventElapsedTime");
        if (i >= 0) {
            times.push_back(static_cast<double>(milliseconds) * 1e-3 / calls);
        }
    }
    cudaEventDestroy(begin);
    cudaEventDestroy(end);
    std::nth_element(times.begin(), times.begin() + std::ssize(times) / 2, times.end());
    return times[times.size() / 2];
}

double results::seconds_in_a_row(std::function<void()> const& call, std::function<void()> const& wait) const
{
    int const in_a_row = asked_.tiny() ? 1 : 8;  // the first one's start and the wait count for an eighth
    std::vector<double> times;
    for (int i = -1; i < std::max(1, asked_.repeats / 2); ++i) {
        wait();
        auto const begin = std::chrono::steady_clock::now();
        for (int k = 0; k < in_a_row; ++k) {
            call();
        }
        wait();
        if (i >= 0) {
            times.push_back(std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count() / in_a_row);
        }
    }
    std::nth_element(times.begin(), times.begin() + std::ssize(times) / 2, times.end());
    return times[times.size() / 2];
}

measurement const& results::add(measurement what, std::function<void()> const& call, std::function<void()> const& wait)
{
    what.seconds = std::max(wait ? seconds_in_a_row(call, wait) : seconds_of(call), 1e-9);
    if (what.tokens > 0) {
        what.joules = energy_->of_one(call, what.seconds, asked_.tiny() ? 0 : 2);
    }
    conclude(std::move(what));
    return rows_.back();
}

void results::conclude(measurement what)
{
    auto const peak = peak_.find(what.type);
    double const limit = std::max(what.bytes / copy_, peak == peak_.end() ? 0 : what.flops / peak->second);
    what.share = limit / what.seconds;
    rows_.push_back(std::move(what));
    print(rows_.back());
}

void results::add_size(std::string const& kernel, double bytes, std::function<void()> const& call)
{
    sizes_[kernel].push_back({.kernel = kernel, .type = {}, .shape = {}, .bytes = bytes, .seconds = std::max(seconds_of(call), 1e-9)});
}

void results::print(measurement const& what) const
{
    if (asked_.json) {
        std::printf("%s\n", line_of(what).c_str());
    } else {
        auto const number = [](double value) { return value > 0 ? formatted("%.1f", value) : std::string{"-"}; };
        std::printf("%-34s %-5s %-28s %10.1f %9s %9s %7s %10s\n", what.kernel.c_str(), what.type.c_str(), what.shape.c_str(), what.seconds * 1e6,
                    number(what.bytes / what.seconds * 1e-9).c_str(), number(what.flops / what.seconds * 1e-12).c_str(),
                    (what.share > 0 ? formatted("%.1f%%", 100 * what.share) : std::string{"-"}).c_str(),
                    number(what.tokens > 0 ? what.joules * 1e6 / static_cast<double>(what.tokens) : 0).c_str());
    }
    std::fflush(stdout);
}

std::string results::heading() const
{
    int driver = 0;
    int runtime = 0;
    check(cudaDriverGetVersion(&driver), "cudaDriverGetVersion");
    check(cudaRuntimeGetVersion(&runtime), "cudaRuntimeGetVersion");
    return formatted(
        "{\"device\": \"%s\", \"date\": \"%s\", \"driver_cuda\": %d, \"runtime_cuda\": %d, \"clock_mhz\": %.0f, \"copy_bytes_per_s\": %.6g, \"bf16_flop_per_s\": %.6g, \"fp32_flop_per_s\": %.6g, "
        "\"mib\": %g, \"repeats\": %d}",
        device_.c_str(), today().c_str(), driver, runtime, energy_->clock_mhz(), copy_, peak_.at("bf16"), peak_.at("fp32"), asked_.mib, asked_.repeats);
}

std::string line_of(measurement const& what)
{
    auto text = formatted("{\"kernel\": \"%s\", \"type\": \"%s\", \"shape\": \"%s\", \"bytes\": %.0f, \"flops\": %.0f, \"seconds\": %.6g, \"share\": %.4f",
                          what.kernel.c_str(), what.type.c_str(), what.shape.c_str(), what.bytes, what.flops, what.seconds, what.share);
    if (what.tokens > 0) {
        text += formatted(", \"tokens\": %lld, \"tokens_per_s\": %.6g", static_cast<long long>(what.tokens), static_cast<double>(what.tokens) / what.seconds);
        text += what.joules > 0 ? formatted(", \"joules_per_token\": %.6g", what.joules / static_cast<double>(what.tokens)) : "";
    }
    return text + "}";
}

}  // namespace bench
