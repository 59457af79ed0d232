"""What a person at a terminal sees and presses: keys, menus, a few lines drawn in place, a whole screen."""
