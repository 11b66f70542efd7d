# What the Python module needs: an interpreter with its headers, and pybind11's headers, which are all there is of it.
set(STIPPLE_PYTHON "" CACHE FILEPATH "Python interpreter that the module is built for; empty: the system's")
if(STIPPLE_PYTHON)
    set(Python3_EXECUTABLE ${STIPPLE_PYTHON})
elseif(SKBUILD)
    # pip names its own
elseif(EXISTS /usr/include/pybind11/pybind11.h)
    set(Python3_EXECUTABLE /usr/bin/python3)  # a distribution's pybind11 and numpy belong to its own Python
endif()
find_package(Python3 QUIET COMPONENTS Interpreter Development.Module)
if(NOT Python3_FOUND)
    message(FATAL_ERROR "stipple: Python's headers are missing. Install them with: apt-get install python3-dev (or scripts/bootstrap.sh test), or set STIPPLE_PYTHON")
endif()

# Debian's package; else the package of pip; else those that torch brings along.
execute_process(COMMAND ${Python3_EXECUTABLE} -c "
import importlib.util
for name in ('pybind11', 'torch'):
    found = importlib.util.find_spec(name)
    if found and found.submodule_search_locations:
        print(found.submodule_search_locations[0] + '/include')
" OUTPUT_VARIABLE bundled OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
string(REPLACE "\n" ";" bundled "${bundled}")
if(STIPPLE_TORCH)
    list(APPEND bundled ${STIPPLE_TORCH}/include)
endif()
if(SKBUILD)
    set(pybind11_folders ${bundled} /usr/include /usr/local/include)
else()
    set(pybind11_folders /usr/include /usr/local/include ${bundled})
endif()
find_path(STIPPLE_PYBIND11 pybind11/pybind11.h PATHS ${pybind11_folders} NO_DEFAULT_PATH)
if(NOT STIPPLE_PYBIND11)
    message(FATAL_ERROR "stipple: pybind11 is missing. Install it with: apt-get install pybind11-dev (or scripts/bootstrap.sh test), or pip install pybind11")
endif()
# Beside torch's copy are headers of libraries that are ours in other versions: only pybind11 itself may be seen.
file(MAKE_DIRECTORY ${CMAKE_BINARY_DIR}/pybind11_alone)
file(CREATE_LINK ${STIPPLE_PYBIND11}/pybind11 ${CMAKE_BINARY_DIR}/pybind11_alone/pybind11 SYMBOLIC)

add_library(stipple_pybind11 INTERFACE)
target_include_directories(stipple_pybind11 SYSTEM INTERFACE ${CMAKE_BINARY_DIR}/pybind11_alone)
target_link_libraries(stipple_pybind11 INTERFACE Python3::Module)
