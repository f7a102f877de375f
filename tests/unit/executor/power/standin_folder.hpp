#pragma once
// SPDX-License-Identifier: Apache-2.0

// The folder in which the stand-in for NVML keeps its devices, with the table of a measured one: powers and clocks of
// the first stage's forward computation in the published profile when that is there, else a few rows of our own.

#include <cstdlib>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "rheo/units/csv.hpp"
#include "support/temporary_folder.hpp"

struct standin_folder : temporary_folder {
    std::map<int, double> table;  ///< MHz to W

    standin_folder()
    {
        ::setenv("RHEO_STANDIN", path.c_str(), 1);
        if (char const* const shared = std::getenv("RHEO_SHARED")) {
            std::ifstream file(std::string{shared} + "/data/perseus/gpt3-175b_a100-sxm_profile.csv");
            for (std::string line; std::getline(file, line);) {
                auto const cells = rheo::cells_of(line);
                int clock = 0;
                double time = 0;
                double energy = 0;
                if (cells.size() == 5 && cells[0] == "0" && cells[1] == "forward" && rheo::read_number(cells[2], clock) && rheo::read_number(cells[3], time) &&
                    rheo::read_number(cells[4], energy)) {
                    table[clock] = energy / time;
                }
            }
        }
        if (table.empty()) {
            table = {{1410, 474.5}, {1305, 401.2}, {1200, 352.0}, {1005, 280.4}, {810, 220.9}};
        }
        std::ostringstream rows;
        for (auto const& [clock, power] : table) {
            rows << clock << ' ' << power << '\n';
        }
        write("table", rows.str());
    }
    ~standin_folder() { ::unsetenv("RHEO_STANDIN"); }

    void behave(std::string const& how) const { write("behaviour", how); }

    int highest() const { return table.rbegin()->first; }
    int second() const { return std::next(table.rbegin())->first; }
    int lowest() const { return table.begin()->first; }

    /// What was changed so far, a line each.
    std::vector<std::string> log() const
    {
        std::vector<std::string> lines;
        std::istringstream text(read("log"));
        for (std::string line; std::getline(text, line);) {
            lines.push_back(line);
        }
        return lines;
    }

    /// The clock that a device is locked to; 0: none.
    int locked(int device) const
    {
        std::istringstream text(read("device-" + std::to_string(device)));
        int clock = 0;
        text >> clock;
        return clock;
    }
};
