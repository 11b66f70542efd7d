"""What of the public headers has no binding, and why: for structure_test.py."""


def _because(groups):
    return {name: reason for reason, names in groups.items() for name in names.split()}


IO = _because({
    "numbers and words of text formats: Python has its own":
        "append_number append_world for_each_word is_blank lower_case next_word parse_number scan_number trimmed read_number",
    "one format of load, save, parse and write":
        "parse_kitti parse_las parse_npy parse_npz parse_obj parse_off parse_pcd parse_ply parse_pts parse_stl parse_xyz "
        "parse_xyzn parse_xyzrgb write_csv write_kitti write_las write_npy write_npz write_obj write_off write_pcd write_ply "
        "write_pts write_stl write_xyz write_xyzn write_xyzrgb load_hdf5_cloud save_hdf5_cloud",
    "a step of load_npy, load_npz and save_npz":
        "decode_npy npy_header parse_npy_array parse_npz_arrays read_npy_header write_npy_array write_npz_arrays "
        "write_npz_views",
    "a step of load_safetensors and save_safetensors":
        "find parse_safetensors read_safetensors_header safetensors_dtype write_safetensors",
    "a step of load_image and Image.save":
        "load_image_as_stored parse_jpeg parse_jpeg_as_stored parse_png turned_upright write_jpeg write_png",
    "a step of load_colmap and load_transforms":
        "name_of parse_colmap_cameras parse_colmap_images parse_colmap_points parse_transforms path_fault pose_of",
    "scenes are written and trained on by radiance":
        "lens_of set_pose write_colmap_binary write_colmap_cameras write_colmap_images write_colmap_points "
        "write_colmap_text",
    "TensorBoard reads and writes event files in Python":
        "event_path event_record find_event_file load_events parse_events rewind_events",
    "data sets of TensorFlow are read by stipple's data": "parse_example read_example",
    "formats are words in Python": "format_by_name info_of require_can_hold",
    "shared by the writers of LAS": "grid_for have_same_records las_box",
    "save_hdf5_arrays writes the same datasets": "save_hdf5",
})

GEOMETRY = _because({
    "a step of register_globally, whose poses bring its numbers":
        "common_spacing evidence_of judged_edge judged_pair judged_scan judged_support pose_confidence seen_through support_of "
        "search_scan thin_scan",
    "a step of tasks.register_scans": "search_promise",
    "reasons of a verdict are in its text": "unconverged_text undetermined_text",
    "a step of merge_clouds": "fitted merge_facts plan_merge",
    "a step of find_sweep_rings": "seen_from",
    "odometry reads folders of sweeps: stipple register --sequence": "deskewed",
    "a piece of kernels": "gather_bits",
    "a check that others make": "require_mesh require_region",
    "both kinds of transforms are 4 x 4 matrices": "affine_from_numbers to_affine",
    "states are words in Python": "to_string",
})

PICTURE = _because({
    "draws into pixels: Image.numpy() and any library of Python do":
        "blend draw_axes draw_color_bar draw_frame draw_labels draw_line draw_polyline draw_scale_bar draw_text fill "
        "fill_rect fit_text labels_width color_bar_width text_width",
    "a step of draw_figure": "automatic_color axis_of choose_range direction_of fit_camera set_view",
    "a step of draw_chart": "choose_ticks",
    "rays of stipple mesh rays; cast_rays takes any": "pixel_rays require_valid",
    "vectors of pixels": "mix normalized smooth_step to_rgb to_vec",
    "a step of stipple picture; draw_figure takes its style as arguments": "set_viewpoint style_of",
    "words are given as they are": "color_map_by_name parse_color up_axis_by_name up_axis_names view_names",
})

METRICS = _because({
    "words are arguments in Python": "name_of extra_by_name floor_sampling_by_name protocol_by_name",
    "the defaults of normalised_uniformity": "nuc_defaults",
    "writes docs/metrics.md; registry() has the same as data": "registry_markdown",
    "a check that other functions make": "require_motion",
    "words of the command line: evaluate takes extras": "check_limits extras_for parse_choice parse_limits",
})

NETWORK = _because({
    "words are arguments in Python": "name_of activation_named parse_weight_storage",
    "a check that Builder and validate make": "check_layer check_name infer_type label_of owner_of slope_range",
    "a piece of to_text and str()": "brief_options_text grouped options_text to_string",
})

MODELS = _because({
    "build_model makes it by its name":
        "autoencoder flow_upsampler gumbel_subset pcrnet pointnet_classifier pointnet_part_segmenter pointnet_segmenter "
        "puflow samplenet",
    "options are a dict in Python":
        "autoencoder_options flow_upsampler_options "
        "gumbel_subset_options pcrnet_options published_sampler puflow_options "
        "samplenet_options",
    "a part of flow_upsampler that tasks.Upsampler runs":
        "flow_upsampler_decoder flow_upsampler_encoder flow_upsampler_first_step flow_upsampler_velocity",
})

ENGINE = _because({
    "words are arguments in Python": "name_of parse_precision parse_range_method",
    "a step of compile": "is_of_chains lifetimes lower multiply_adds plan_memory point_sets",
    "profiles are written by the program: stipple run --profile": "profile_engine",
})

RADIANCE = _because({
    "a step of evaluate": "composited mean_of move_cameras score_view",
    "a word of studies: stipple study radiance": "name_of require_path step_path_by_name",
    "scenes are written by the program": "to_colmap",
    "a step of stipple radiance train, which keeps runs in folders":
        "apply_setting background_for mode_for recorded_run run_config run_of train_options",
})

TASKS = _because({
    "words are arguments in Python":
        "all_poses kernel_by_name levels_of matrix_of method_by_name name_of parse_axis poses_about sample_method_by_name "
        "taken_up to_string turn turn_points up_of",
    "what a command or a request asks, as text and words: the other calls take the same as arguments":
        "described load_classifier points_of poses_of register_options resolved text_of to_json wanted_count",
    "a step of evaluate":
        "draws_of items_of_category known_classes match_classes match_parts require_valid scores_of seen_points",
    "a step of classify": "assess confidence_of measure_shape ranked",
    "a step of reconstruct": "likeness_of require_count seen_cloud unlikeness",
    "a step of networks that are made of files": "compile device_for find_type load_model_or_engine output_type",
    "clouds are given as arrays and objects": "load_batch load_points network_points synthetic_clouds",
    "made when networks are trained, and stored in their weights":
        "confidence_clouds confidence_json fit_confidence fit_likeness fit_temperature items_of_classes likeness_clouds "
        "likeness_json parse_confidence parse_likeness set_confidence set_likeness",
    "compares engines for stipple engine": "accuracy_of answers_of bench_engine compare other_inputs run_engine",
    "a summary for people: stipple info": "describe_file summarise",
    "commands of the program, whose pieces geometry and metrics bind":
        "cast_at_mesh make_solid make_surface mesh_facts mesh_faults notes_of plan_scores ray_of rays_of report_scores "
        "sample_mesh score_pair simplify_mesh watertight_text with_errors",
    "stipple weights and stipple evaluate report them":
        "category_scores class_accuracies clouds_of_class complete_card evaluation_facts evaluation_work "
        "measure_confidence",
    "files of the command line; geometry reads transforms from text":
        "find_pose has_scan_poses load_affine load_motion_between load_polygon load_scan_poses load_text parse_scan_poses "
        "to_text",
    "tasks of single commands, made of functions of geometry and metrics that are bound":
        "add_normals check_options clean convert crop_mask describe_values extent_of first_matrix label_clusters "
        "label_ground label_planes measure_distances moved_bounds moved_grid orient_normals points_at region_of "
        "removed_text source_ids spacing_of_merged splitter_of to_json transform_of transformed_of writing_of",
    "attributes are set as cloud.attributes[name]": "attribute_of put_attribute",
    "folders of sweeps are registered by the program: stipple register --sequence":
        "load_kitti_calibration load_kitti_poses parse_kitti_poses pose_drift register_sequence sweep_times to_kitti_poses",
    "segment(...).labels is set by cloud.attributes[\"label\"]": "put_labels",
})
