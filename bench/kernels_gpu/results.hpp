#pragma once
// SPDX-License-Identifier: Apache-2.0

// What was measured, beside the limits of the same device in the same run: the bandwidth of a copy and the rate of a large product. A row's share is
// the time that the tighter of the two would have taken, over the time that it took.

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace bench {

struct options {
    double mib = 256;  ///< that a memory-bound kernel moves at least; below 1: only to see that everything runs, at sizes to match
    int repeats = 20;
    bool json = false;        ///< lines of JSON in place of the table
    std::string report = {};  ///< a folder for the page, its pictures and the lines
    std::string nvml = {};    ///< the library; none: the loader's

    bool tiny() const { return mib < 1; }
};

struct measurement {
    std::string kernel;
    std::string type;  ///< what is stored: bf16, fp32, ...
    std::string shape;
    double bytes = 0;  ///< that must move
    double flops = 0;
    std::int64_t tokens = 0;  ///< that pass through; 0: they have no meaning here, and energy is not looked at
    double seconds = 0;       ///< the median of the repeats
    double share = 0;         ///< of the measured limit
    double joules = 0;        ///< of one run; 0: not known
};

class energy_reader;

class results {
public:
    explicit results(options const& asked);
    ~results();
    results(results const&) = delete;
    results& operator=(results const&) = delete;

    options const& asked() const { return asked_; }
    double copy_rate() const { return copy_; }                                  ///< in bytes/s, each byte read and written counting twice
    double peak_rate(std::string const& type) const { return peak_.at(type); }  ///< in flop/s
    std::vector<measurement> const& rows() const { return rows_; }
    /// A memory-bound kernel's sizes against its rates, for the picture.
    std::map<std::string, std::vector<measurement>> const& sizes() const { return sizes_; }

    /// Measures a call and prints it. One that puts its work into a queue of its own comes with what waits for it, and is measured some times in a row.
    measurement const& add(measurement what, std::function<void()> const& call, std::function<void()> const& wait = {});
    void row(char const* kernel, char const* type, std::int64_t rows, std::int64_t width, double bytes, std::function<void()> const& call)
    {
        add({.kernel = kernel, .type = type, .shape = std::to_string(rows) + " x " + std::to_string(width), .bytes = bytes}, call);
    }
    /// Takes over what follows from other rows, and prints it.
    void conclude(measurement what);
    /// Measures a call for the picture of sizes alone.
    void add_size(std::string const& kernel, double bytes, std::function<void()> const& call);

    /// The device, versions, date, limits: one line of JSON.
    std::string heading() const;

private:
    double seconds_of(std::function<void()> const& call) const;
    double seconds_in_a_row(std::function<void()> const& call, std::function<void()> const& wait) const;
    void print(measurement const& what) const;

    options asked_;
    std::unique_ptr<energy_reader> energy_;
    std::string device_;
    double copy_ = 1;
    std::map<std::string, double> peak_;
    std::vector<measurement> rows_;
    std::map<std::string, std::vector<measurement>> sizes_;
};

/// A row as a line of JSON.
std::string line_of(measurement const& what);

}  // namespace bench
