-- Knows what is beside it and above it.
local function later()
	return require("./Deep")
end
return { name = script.Name, parent = script.Parent.Name, up = require("../Counter"), above = require(script.Parent.Parent.Counter), later = later }
