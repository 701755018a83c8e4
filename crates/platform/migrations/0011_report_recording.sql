-- The recording of the world that a report is about, where worlds are recorded (BEY-8): the name of a file.
ALTER TABLE reports ADD COLUMN recording TEXT;
