# SPDX-License-Identifier: Apache-2.0
"""Recipe for Spack 1.0 and later: `spack repo add <checkout>/cmake/spack`, then `spack install rheo ^openmpi@5:`."""

from spack_repo.builtin.build_systems.cmake import CMakePackage, generator
from spack_repo.builtin.build_systems.cuda import CudaPackage

from spack.package import *


class Rheo(CMakePackage, CudaPackage):
    """Trains models in pipelines that flow around failures: a header-only C++20 library of plans, schedules
    and recoveries that the compiler checks, and a program that runs them under MPI with the same bits
    after the loss of ranks."""

    license("Apache-2.0")

    # The checkout that this recipe is part of: `spack dev-build rheo@main` in it.
    version("main", branch="main")

    variant("executor", default=True, description="kernels, executor and the program rheo; else headers only")
    variant("nccl", default=False, when="+executor+cuda", description="run-time library for messages between GPUs")

    depends_on("cxx", type="build")
    depends_on("cmake@3.25:", type="build")
    depends_on("ninja", type="build")
    depends_on("range-v3@0.12:", type=("build", "link"))
    with when("+executor"):
        # Losses of ranks are survived by Open MPI 5 with its fault tolerance, which is on by default; with any other
        # MPI they are resumed by starting the same command again.
        depends_on("mpi")
        depends_on("openblas threads=pthreads")
        depends_on("cli11", type="build")
        depends_on("tomlplusplus", type="build")
        depends_on("nlohmann-json")
        depends_on("fmt")
        depends_on("boost@1.74:", type="build")
        depends_on("xxhash@0.8:")
        depends_on("pcre2@10.40:")
        depends_on("utf8proc")
        depends_on("zlib-api")
        depends_on("zstd")
        depends_on("sentencepiece")
    # cuBLASLt, cuDNN and NCCL are opened when they are used.
    with when("+cuda"):
        depends_on("cuda@12.4:")
        depends_on("cudnn@9:", type="run")
    depends_on("nccl@2.27.3:", when="+nccl", type="run")

    conflicts("+cuda", when="~executor", msg="the headers alone have no kernels: use +executor with +cuda")
    conflicts("cuda_arch=none", when="+cuda", msg="say for which devices, for example cuda_arch=90a")

    conflicts("%gcc@:11", msg="rheo needs C++20 as of g++ 12")
    conflicts("%clang@:15", msg="rheo needs C++20 as of clang 16")

    generator("ninja")

    def cmake_args(self):
        args = [
            self.define("RHEO_TESTS", False),
            self.define("RHEO_EXECUTOR", "ON" if self.spec.satisfies("+executor") else "OFF"),
            self.define("RHEO_CUDA", "ON" if self.spec.satisfies("+cuda") else "OFF"),
        ]
        if self.spec.satisfies("+executor"):
            # Spack's MPI is the one to use, whether it survives losses or not.
            args += [self.define("MPI_HOME", self.spec["mpi"].prefix), self.define("RHEO_ANY_MPI", True)]
        if self.spec.satisfies("+cuda"):
            args.append(self.define("RHEO_CUDA_ARCHITECTURES", ";".join(self.spec.variants["cuda_arch"].value)))
        return args
