// SPDX-License-Identifier: Apache-2.0
#include <rheo/units/units.hpp>

int main() {}
