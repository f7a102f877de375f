// SPDX-License-Identifier: Apache-2.0
// The page: what the device is, a roofline of what multiplies, bandwidths over sizes, and all rows; beside it the rows as lines of JSON.
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>

#include "families.hpp"
#include "log_chart.hpp"
#include "results.hpp"

namespace bench {

namespace {

std::string with_digits(double value, int digits)
{
    char text[64];
    std::snprintf(text, sizeof text, "%.*f", digits, value);
    return text;
}

std::string message(measurement const& r)
{
    return r.kernel + " " + r.type + ", " + r.shape + ": " + with_digits(r.seconds * 1e6, 1) + " us, " + with_digits(100 * r.share, 1) + " % of the limit";
}

log_chart roofline(results const& from, std::string const& type)
{
    log_chart chart{.x_name = "flop per byte", .y_name = "Tflop/s", .series = {}};
    double const copy = from.copy_rate();
    double const peak = from.peak_rate(type);
    double const ridge = peak / copy;
    chart.series.push_back(
        {.name = "measured limit", .points = {{ridge / 32, peak / 32 * 1e-12}, {ridge, peak * 1e-12}, {ridge * 32, peak * 1e-12}}, .is_line = true});
    auto const begins = [](measurement const& r, char const* with) { return r.kernel.rfind(with, 0) == 0; };
    for (char const* const family : {"linear_forward", "linear_backward", "attention_forward", "attention_backward"}) {
        chart_series s{.name = family, .points = {}};
        for (auto const& r : from.rows()) {
            if (r.type == type && begins(r, family) && r.bytes > 0) {
                s.points.push_back({r.flops / r.bytes, r.flops / r.seconds * 1e-12, message(r)});
            }
        }
        chart.series.push_back(std::move(s));
    }
    return chart;
}

log_chart bandwidths(results const& from)
{
    log_chart chart{.x_name = "MiB that move", .y_name = "GB/s", .series = {}};
    for (auto const& [kernel, sizes] : from.sizes()) {
        chart_series s{.name = kernel, .points = {}, .is_line = true};
        for (auto const& r : sizes) {
            s.points.push_back({r.bytes / 1048576, r.bytes / r.seconds * 1e-9, kernel + ": " + with_digits(r.seconds * 1e6, 1) + " us"});
        }
        chart.series.push_back(std::move(s));
    }
    return chart;
}

std::string table(results const& from)
{
    std::string text =
        "<table><tr><th>kernel</th><th>type</th><th>shape</th><th>us</th><th>GB/s</th><th>Tflop/s</th><th>share of the limit</th><th>tokens/s</th><th>uJ/token</th></tr>\n";
    for (auto const& r : from.rows()) {
        auto const cell = [](bool there, double value, int digits) { return "<td>" + (there ? with_digits(value, digits) : std::string{}) + "</td>"; };
        double const tokens = static_cast<double>(r.tokens);
        text += "<tr><td>" + rheo::escaped(r.kernel) + "</td><td>" + r.type + "</td><td>" + rheo::escaped(r.shape) + "</td>" + cell(true, r.seconds * 1e6, 1) +
                cell(r.bytes > 0, r.bytes / r.seconds * 1e-9, 1) + cell(r.flops > 0, r.flops / r.seconds * 1e-12, 1) + cell(true, 100 * r.share, 1) +
                cell(r.tokens > 0, tokens / r.seconds, 0) + cell(r.joules > 0, r.joules * 1e6 / std::max(tokens, 1.0), 2) + "</tr>\n";
    }
    return text + "</table>\n";
}

}  // namespace

bool write_report(results const& from)
{
    std::filesystem::path const folder = from.asked().report;
    std::error_code problem;
    std::filesystem::create_directories(folder, problem);
    std::ofstream lines{folder / "results.jsonl"};
    lines << from.heading() << '\n';
    for (auto const& r : from.rows()) {
        lines << line_of(r) << '\n';
    }
    std::ofstream page{folder / "report.html"};
    page
        << "<!doctype html><meta charset=\"utf-8\"><title>Kernels</title>\n<style>body{font-family:sans-serif;max-width:70em;margin:1em auto}td,th{padding:0 .6em;text-align:right}td:first-child,th:first-child{text-align:left}</style>\n"
        << "<h1>Kernels</h1>\n<p>" << rheo::escaped(from.heading()) << "</p>\n";
    for (char const* const type : {"bf16", "fp32"}) {
        page << "<h2>Products and attention in " << type << ", under the measured limits</h2>\n" << drawn(roofline(from, type));
    }
    page << "<h2>Bandwidth over sizes</h2>\n"
         << drawn(bandwidths(from))
         << "<h2>All</h2>\n<p>The limit is the bandwidth of a copy and the rate of a large product on this device, in this run.</p>\n"
         << table(from);
    lines.close();
    page.close();
    return lines.good() && page.good();
}

}  // namespace bench
