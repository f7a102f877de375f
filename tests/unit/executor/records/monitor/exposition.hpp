#pragma once
// SPDX-License-Identifier: Apache-2.0

// A strict reader of Prometheus' text format 0.0.4, as far as a collector for text files takes it: no time stamps, help and type before the samples of
// a metric, each metric in one place, each sample once, a line end behind the last line.

#include <cctype>
#include <cstdlib>
#include <limits>
#include <map>
#include <set>
#include <sstream>
#include <stdexcept>
#include <string>

struct read_metric {
    std::string type;
    std::string help;
    std::map<std::string, double> samples;  ///< by the value of their label run
};

class exposition_reader {
public:
    explicit exposition_reader(std::string const& text)
    {
        require(!text.empty() && text.back() == '\n', "a line end behind the last line");
        std::istringstream lines{text};
        for (line_number_ = 1; std::getline(lines, line_); ++line_number_) {
            at_ = 0;
            if (line_.starts_with("# ")) {
                comment();
            } else {
                sample();
            }
        }
        for (auto const& [name, metric] : metrics) {
            require(!metric.samples.empty(), "a sample of " + name);
        }
    }

    std::map<std::string, read_metric> metrics;

    double value(std::string const& name) const
    {
        auto const& samples = metrics.at(name).samples;
        return samples.size() == 1 ? samples.begin()->second : throw std::runtime_error("several samples");
    }

private:
    void require(bool holds, std::string const& expected) const
    {
        if (!holds) {
            throw std::runtime_error("line " + std::to_string(line_number_) + ", column " + std::to_string(at_) + ": expected " + expected + ": " + line_);
        }
    }

    void expect(std::string const& word)
    {
        require(line_.compare(at_, word.size(), word) == 0, "'" + word + "'");
        at_ += word.size();
    }

    std::string name()
    {
        auto const begin = at_;
        while (at_ < line_.size() && (std::isalnum(static_cast<unsigned char>(line_[at_])) != 0 || line_[at_] == '_' || line_[at_] == ':')) {
            ++at_;
        }
        require(at_ > begin && std::isdigit(static_cast<unsigned char>(line_[begin])) == 0, "a name");
        return line_.substr(begin, at_ - begin);
    }

    void comment()
    {
        expect("# ");
        bool const is_help = line_.compare(at_, 5, "HELP ") == 0;
        expect(is_help ? "HELP " : "TYPE ");
        auto const of = name();
        expect(" ");
        auto const rest = line_.substr(at_);
        require(!rest.empty() && rest.find('\\') == rest.npos, "a text without backslashes");
        if (is_help) {
            require(seen_.insert(of).second, "each metric in one place");
            current_ = of;
            metrics[of].help = rest;
        } else {
            require(of == current_ && metrics[of].type.empty() && metrics[of].samples.empty(), "one type, behind the help and before the samples");
            require(rest == "counter" || rest == "gauge", "a type");
            require((rest == "counter") == of.ends_with("_total"), "counters, and only they, end in _total");
            metrics[of].type = rest;
        }
    }

    void sample()
    {
        auto const of = name();
        require(of == current_ && !metrics[of].type.empty(), "samples behind their type");
        expect("{run=\"");
        std::string label;
        for (;; ++at_) {
            require(at_ < line_.size(), "the end of the label's value");
            auto const c = line_[at_];
            if (c == '"') {
                break;
            }
            if (c != '\\') {
                label += c;
                continue;
            }
            ++at_;
            require(at_ < line_.size() && std::string{"\\\"n"}.find(line_[at_]) != std::string::npos, "an escape");
            label += line_[at_] == 'n' ? '\n' : line_[at_];
        }
        expect("\"} ");
        auto const text = line_.substr(at_);
        double number = 0;
        if (text == "NaN" || text == "+Inf" || text == "-Inf") {
            number = text == "NaN" ? std::numeric_limits<double>::quiet_NaN() : std::numeric_limits<double>::infinity() * (text == "+Inf" ? 1 : -1);
        } else {
            require(!text.empty() && text.find_first_not_of("0123456789.e+-") == text.npos, "a number and no time stamp");
            char* end = nullptr;
            number = std::strtod(text.c_str(), &end);
            require(end == text.c_str() + text.size(), "one whole number");
        }
        require(metrics[of].samples.emplace(label, number).second, "each sample once");
    }

    std::string line_{};
    std::size_t at_ = 0;
    int line_number_ = 0;
    std::string current_{};
    std::set<std::string> seen_{};
};
