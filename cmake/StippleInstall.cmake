# cmake --install: headers, libraries, the program and a package that find_package(stipple) finds; CPack: a .deb.

include(CMakePackageConfigHelpers)
set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/stipple)
install(EXPORT stipple-targets NAMESPACE stipple:: DESTINATION ${package_dir})
configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/stipple-config.cmake.in ${CMAKE_BINARY_DIR}/stipple-config.cmake
    INSTALL_DESTINATION ${package_dir})
write_basic_package_version_file(${CMAKE_BINARY_DIR}/stipple-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_BINARY_DIR}/stipple-config.cmake ${CMAKE_BINARY_DIR}/stipple-config-version.cmake DESTINATION ${package_dir})
install(FILES ${PROJECT_SOURCE_DIR}/LICENSE ${PROJECT_SOURCE_DIR}/README.md ${PROJECT_SOURCE_DIR}/CHANGELOG.md
    DESTINATION ${CMAKE_INSTALL_DOCDIR})

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME stipple)
set(CPACK_PACKAGE_CONTACT "the stipple developers <stipple@localhost>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "Toolkit that learns on 3D points: read, convert, draw, sample, recognise")
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_STRIP_FILES ON)
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
include(CPack)
