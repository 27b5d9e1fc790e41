package fromskel_test

import "slices"

// A class is a kind of difference to skel, with its reason. Cases that differ belong
// to the first class that explains them.
type class struct {
	title, reason string
	explains      func(c testCase, skel, ours outcome) bool
}

// when explains the cases with one of the choices.
func when(what string, choices ...string) func(testCase, outcome, outcome) bool {
	return func(c testCase, _, _ outcome) bool { return c.is(what, choices...) }
}

func classes() []class {
	return slices.Concat(commandClasses(), environmentClasses(), configurationClasses(), answerClasses())
}

func commandClasses() []class {
	return []class{{
		"No command",
		"A process without CNI_COMMAND was not executed by a runtime. Both print the about text on standard error. A missing variable is an error " +
			"all the same (code 4), and a script or runtime that forgot it must not take silence for success.",
		func(c testCase, _, _ outcome) bool { return c.command == "" || c.command == "(empty)" },
	}, {
		"VERSION reads its request",
		"The answer to VERSION has the cniVersion of the request (specification, 5). skel does not read the request and answers 1.1.0 to everybody. " +
			"A request that cannot be read, is no JSON object, or whose cniVersion is no string, is an error.",
		func(c testCase, _, _ outcome) bool { return c.command == "VERSION" },
	}, {
		"A command that does not exist",
		"It is refused with code 4, whatever else is wrong. skel looks at the configuration first.",
		func(c testCase, _, _ outcome) bool { return c.command == "UPDATE" || c.command == "add" },
	}}
}

func environmentClasses() []class {
	return []class{{
		"CNI_PATH is optional",
		"The specification lets a runtime leave it out. A plugin without delegates has no use for it, and a DEL without it must clean up.",
		func(c testCase, skel, ours outcome) bool {
			return c.is(searchPath, "absent", "empty") && skel.code == "4" && ours.code != "4"
		},
	}, {
		"The plugin's own namespace",
		"skel compares the namespaces when the callback has done its work: an ADD has put an interface into the host and prints two documents, a DEL has " +
			"removed one from the host; the code, 8, is not defined. Here an ADD and a CHECK are refused before, and on a DEL the namespace is " +
			"gone: Netns is empty. CNI_NETNS_OVERRIDE switches this off, as it does for skel.",
		func(c testCase, _, _ outcome) bool { return c.is(netNS, "the host's") && !c.is(override, "set") },
	}, {
		"A namespace that is none",
		"For skel a path that cannot be opened is a namespace other than the host's, and each callback deals with it. Here it is an error (code 4) of " +
			"ADD and CHECK before the callback runs; on a DEL Netns is empty.",
		when(netNS, "missing", "a file"),
	}, {
		"Interface names that the kernel cannot make",
		"`all`, `default` and names with a `%` are refused on ADD, not on DEL.",
		func(c testCase, _, _ outcome) bool { return c.command == "ADD" && c.is(ifName, "reserved") },
	}, {
		"CNI_ARGS that do not parse",
		"They are an error that names the variable (code 4), but for a DEL, which goes on without them. skel leaves them to the callback.",
		when(arguments, "unparsable"),
	}, {
		"CNI_ARGS with empty pieces",
		"`A=1;` is `A=1`. types.LoadArgs refuses the empty piece, so a callback gets the arguments without it.",
		when(arguments, "with a trailing semicolon"),
	}, {
		"CNI_ARGS with = in a value",
		"A value may contain it. types.LoadArgs refuses such a value, and still does in a callback that uses it.",
		when(arguments, "with = in a value"),
	}}
}

func configurationClasses() []class {
	return []class{{
		"Members of the wrong type",
		"A name, type, cniVersion or list of attachments of the wrong type makes the configuration invalid (7), which says more than a failure to decode " +
			"it (6); it is noticed before the version is.",
		func(c testCase, _, ours outcome) bool {
			return ours.code == "7" && (c.is("version", "a number") || c.is("stdin", "with a number for a name", "with a number for a type", "with bad attachments"))
		},
	}, {
		"A DEL of any version",
		"An attachment must not outlive the version that it was made with: a DEL is served whatever the cniVersion of its configuration. A callback " +
			"gets the configuration in the newest version that it speaks.",
		func(c testCase, skel, _ outcome) bool {
			return c.command == "DEL" && c.is("version", "1.0.5", "9.9.9", "not semver") && !skel.ran
		},
	}, {
		"A cniVersion that is none",
		"It is a version that is not supported (1). For skel it is a failure to decode (6) where it compares versions, and not supported elsewhere.",
		when("version", "not semver"),
	}, {
		"null for a configuration",
		"It is not the JSON object that it should be (6). For skel it is an object without a name (7).",
		when("stdin", "null"),
	}, {
		"GC without a list of valid attachments",
		"Every attachment would be stale, those of running containers too, so it is refused (7). skel hands it to the callback. null alone is no list " +
			"either; null under both names is one, an empty one: libcni 1.2.3 and later send it for a runtime that gives no slice.",
		func(c testCase, _, _ outcome) bool {
			return c.command == "GC" && c.is("stdin", "without attachments", "with null for attachments")
		},
	}, {
		"A prevResult that cannot be read",
		"It is an error of ADD and CHECK (6), because it cannot be handed on or compared with, even if the callback does not look at it. The other " +
			"commands go on without it, also in a callback, where version.ParsePrevResult fails.",
		when("stdin", "with a bad prevResult", "with a list for prevResult"),
	}, {
		"A result without an address, before 0.3.0",
		"These versions have no way to say it, so it is an error (999).",
		func(c testCase, skel, ours outcome) bool {
			return c.command == "ADD" && skel.result != "" && ours.code == "999" && c.is("version", "0.1.0", "0.2.0", "absent", "empty") &&
				c.is("do", "parse prevResult", "print an empty object")
		},
	}, {
		"A prevResult of another version",
		"It is read whatever its version. version.ParsePrevResult wants the version of the configuration, so a callback gets it converted.",
		func(c testCase, _, _ outcome) bool {
			return c.is("do", "parse prevResult") && c.is("stdin", "with a 0.2.0 prevResult", "with a 1.0.0 prevResult", "with a prevResult of 9.9.9", "with a prevResult without it", "with an empty prevResult")
		},
	}, {
		"Cleaning up with a configuration that does not decode",
		"DEL and GC of a cni.Plugin get the configuration without the members that do not decode; the callback of this test refuses it, as most do.",
		func(c testCase, _, ours outcome) bool {
			return (c.command == "DEL" || c.command == "GC") && c.is("stdin", "with a list for do")
		},
	}, {
		"A configuration that does not decode into the plugin's type",
		"It is invalid (7), and the function does not run. The list of attachments is looked at for GC alone. The callback of this test decodes all for itself, and reports what it likes (6).",
		when("stdin", "with a list for do", "with bad attachments", "with a number for a type"),
	}}
}

func answerClasses() []class {
	return []class{{
		"A panic",
		"It is an error of the plugin (999) that says where. With skel nothing is printed and the exit status is 2.",
		when("do", "panic"),
	}, {
		"Text on standard output",
		"Standard output is for the one document. What a callback, a library or a child process prints there besides goes to standard error. skel " +
			"leaves it where it is, and the runtime cannot read the result. That an ADD printed a result is seen among other text, log lines in JSON included.",
		func(c testCase, _, ours outcome) bool {
			return c.is("do", "print before", "print after", "log JSON") || c.command != "ADD" && ours.exit == 0 && isAboutPrinting(c)
		},
	}, {
		"Two documents",
		"One is printed. If the callback failed, it is the error, and a result that was printed before goes to standard error. Two results are an error " +
			"(999), and the callback of DEL takes back the ADD.",
		when("do", "print the result twice", "print the result and fail", "print an error and fail"),
	}, {
		"An error that is printed and not returned",
		"An ADD that printed an error document and no result failed with that error. Here the exit status says so too.",
		when("do", "print an error"),
	}, {
		"An ADD without a result",
		"It is an error (999), and the callback of DEL takes back the ADD. With skel it succeeds and prints nothing, which a runtime cannot read. " +
			"An empty object is a result, and gets its version.",
		when("do", "no result", "print only text", "print an empty object"),
	}, {
		"A result that is malformed",
		"It is an error (999) of the plugin that printed it, not of the runtime or the next plugin that has to read it.",
		when("do", "print a bad result"),
	}, {
		"A result of another version",
		"It is converted to the version of the configuration, which the specification wants.",
		when("do", "print another version"),
	}, {
		"A callback that ends the process",
		"What it printed before is not seen any more. A runtime takes an ADD without a result for a failure, and calls DEL.",
		when("do", exits()...),
	}, {
		"Codes that are not defined",
		"Codes below 100 belong to the specification. One that it does not define is reported as 999, with the original code in the details.",
		when("do", "fail with code 0", "fail with code 8", "fail with code 9"),
	}, {
		"Errors of the system",
		"A passing condition (EBUSY, EAGAIN, ENOBUFS and the like) is 11, which a runtime may try again; a failure of storage (ENOSPC, EROFS and " +
			"the like) is 5. For skel every error that is no types.Error is 999.",
		when("do", "fail with EBUSY", "fail with ENOSPC"),
	}, {
		"STATUS with an error of no code",
		"The plugin is not available (50), which is what STATUS asks. For skel it is 999.",
		func(c testCase, _, ours outcome) bool { return c.command == "STATUS" && ours.code == "50" },
	}}
}

func isAboutPrinting(c testCase) bool {
	return !slices.Contains(append(typedBehaviours(), ""), c.choices["do"])
}
