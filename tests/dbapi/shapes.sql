-- What tools send. A block is a comment for people, keys for the test, and one statement.
-- same: a question that release.query must answer with the same numbers
-- rows: all rows, as JSON
-- columns: the names and types, where that is to be looked at
-- refused: a part of the message

-- Superset: a chart of a data set that is a table
-- same: select sex as sex, count(*) as count from people where age >= 20 group by sex order by count desc limit 10000
-- columns: sex VARCHAR, count DOUBLE
SELECT sex AS sex, count(*) AS count FROM (SELECT * FROM people) AS virtual_table WHERE age >= 20 GROUP BY sex ORDER BY count DESC LIMIT 10000;

-- Superset: a metric with CASE, and columns called as they are written
-- same: select city as city, sum(case when smoker then 1 else 0 end) as smokers, count(*) as "COUNT(*)" from people where age >= 20 and city in ('Cork', 'Delft') group by city order by "COUNT(*)" desc
SELECT city AS city, sum(CASE WHEN smoker THEN 1 ELSE 0 END) AS smokers, count(*) AS "COUNT(*)"
FROM (SELECT * FROM public.people) AS virtual_table
WHERE age >= 20 AND city IN ('Cork', 'Delft')
GROUP BY city ORDER BY "COUNT(*)" DESC LIMIT 10000

-- Superset: a line over time
-- same: select date_trunc('month', day) as __timestamp, count(*) as count from people group by date_trunc('month', day)
-- columns: __timestamp TIMESTAMP, count DOUBLE
SELECT DATE_TRUNC('month', day) AS __timestamp, count(*) AS count FROM public.people
WHERE day >= '2024-01-01' AND day < '2025-01-01'
GROUP BY DATE_TRUNC('month', day) LIMIT 50000

-- Superset: a virtual data set of groups
-- same: select sex, count(*) as n from people group by sex
SELECT * FROM (SELECT sex, count(*) AS n FROM people GROUP BY sex) AS virtual_table LIMIT 1001

-- Superset: the sum of a virtual data set
-- same: select count(*) as n from people
SELECT sum(n) AS n FROM (SELECT sex, count(*) AS n FROM people GROUP BY sex) AS virtual_table

-- Superset: the values of a filter
-- rows: [["Aachen"], ["Bergen"], ["Cork"], ["Delft"]]
SELECT city AS city FROM (SELECT * FROM people) AS virtual_table GROUP BY city ORDER BY city ASC LIMIT 1000

-- Superset: a virtual data set of values
-- rows: [["Male"], ["Female"]]
SELECT * FROM (SELECT DISTINCT sex FROM people) AS virtual_table ORDER BY sex DESC LIMIT 10

-- Superset: the columns of a virtual data set
-- rows: []
-- columns: sex VARCHAR, mean DOUBLE
SELECT * FROM (SELECT sex, avg(age) AS mean FROM people GROUP BY sex) AS virtual_table WHERE 0 = 1

-- Metabase: a question
-- same: select city, count(*) as count from people group by city order by city
SELECT "public"."people"."city" AS "city", COUNT(*) AS "count" FROM "public"."people"
GROUP BY "public"."people"."city" ORDER BY "public"."people"."city" ASC

-- Metabase: a question on a question
-- same: select sex, count(*) as count from people where age > 20 group by sex order by sex
SELECT "source"."sex" AS "sex", COUNT(*) AS "count"
FROM (SELECT "public"."people"."age" AS "age", "public"."people"."sex" AS "sex" FROM "public"."people") AS "source"
WHERE "source"."age" > 20 GROUP BY "source"."sex" ORDER BY "source"."sex" ASC

-- Metabase: months
-- same: select cast(date_trunc('month', day) as date) as day_, count(*) as count from people group by cast(date_trunc('month', day) as date) order by 1
-- columns: day_ DATE, count DOUBLE
SELECT CAST(DATE_TRUNC('month', "public"."people"."day") AS date) AS "day_", COUNT(*) AS "count" FROM "public"."people"
GROUP BY CAST(DATE_TRUNC('month', "public"."people"."day") AS date)
ORDER BY CAST(DATE_TRUNC('month', "public"."people"."day") AS date) ASC

-- Metabase: bins
-- same: select floor(age / 10.0) * 10.0 as decade, count(*) as count from people group by 1 order by 1
SELECT FLOOR(("public"."people"."age" / 10.0)) * 10.0 AS "decade", COUNT(*) AS "count" FROM "public"."people"
GROUP BY FLOOR(("public"."people"."age" / 10.0)) * 10.0 ORDER BY 1

-- Metabase: whether a table is there
-- rows: []
SELECT TRUE AS "_" FROM "public"."people" WHERE 1 <> 1 LIMIT 0

-- Metabase: the values of a field
-- rows: [["Aachen"], ["Bergen"], ["Cork"], ["Delft"]]
SELECT "public"."people"."city" FROM "public"."people" GROUP BY "public"."people"."city" ORDER BY "public"."people"."city" ASC LIMIT 5000

-- Tableau: how many rows
-- same: select sum(1) as "cnt:people:ok" from people
SELECT SUM(1) AS "cnt:people:ok" FROM "public"."people" "people" HAVING COUNT(1) > 0

-- Tableau: an average
-- same: select city, avg(age) as "avg:age:ok" from people where sex in ('Female', 'Male') group by city
SELECT "t0"."city" AS "city", AVG(CAST("t0"."age" AS DOUBLE PRECISION)) AS "avg:age:ok"
FROM "public"."people" "t0" WHERE ("t0"."sex" IN ('Female', 'Male')) GROUP BY "t0"."city"

-- the largest groups, without their sizes
-- rows: [["Female"], ["Male"]]
SELECT sex FROM people GROUP BY sex HAVING count(*) > -1000 ORDER BY sex

-- a count as a whole number
-- same: select count(*)::bigint as n from people
-- columns: n BIGINT
SELECT CAST(count(*) AS BIGINT) AS n FROM voile.public.people

-- with a name of its own, and a comment before it
-- same: select sex, count(*) as n from people group by sex
/* ApplicationName=DBeaver 23 */ WITH a AS (SELECT * FROM people) SELECT sex, count(*) AS n FROM a GROUP BY sex

-- in parentheses
-- same: select count(*) from people
(SELECT count(*) FROM people)

-- distinct pairs under a condition on one of them
-- rows: [["Delft", "Female"], ["Delft", "Male"], ["Cork", "Female"]]
select distinct city, sex from people where city > 'B' order by city desc limit 3

-- distinct values of an expression
-- rows: [[10], [20], [30], [40]]
-- columns: decade BIGINT
select distinct age // 10 * 10 as decade from people where age < 50 order by decade

-- distinct values that a condition on another column does not touch
-- rows: [["Female"], ["Male"]]
select distinct sex from people where age > 60

-- every tuple would be listed
-- refused: SELECT DISTINCT *
select distinct * from people

-- too many values
-- refused: more than 50,000
select distinct age, city, day, smoker, sex from people

-- depends on one person
-- refused: MIN(age) is not estimated
SELECT min(age), max(age) FROM people

-- no sum over rows
-- refused: COUNT(DISTINCT city) is not estimated
SELECT COUNT(DISTINCT city) FROM people

-- a count of some rows that nobody knows
-- refused: LIMIT in a subquery is not answered
SELECT COUNT(*) FROM (SELECT * FROM people LIMIT 100) AS t

-- no release knows which rows belong together
-- refused: cannot be joined with itself
SELECT count(*) FROM people a JOIN people b ON a.age = b.age

-- two questions
-- refused: UNION is not answered
SELECT count(*) FROM people UNION ALL SELECT count(*) FROM people

-- a misspelt name
-- refused: did you mean 'people'?
SELECT count(*) FROM peoples

-- another schema
-- refused: there is no table 'other.people'
SELECT count(*) FROM other.people

-- beside catalogues
-- refused: is not read beside catalogues
SELECT * FROM people JOIN information_schema.tables AS t ON true

-- a window of rows
-- refused: SUM(age) OVER () is not estimated
SELECT sum(age) OVER () FROM people

-- what the parser lets pass, and is no SQL
-- refused: nothing stands
SELECT ,FROM people GROUP BY sex LIMIT 1000

-- a word that is missing
-- refused: two texts stand side by side
SELECT DISTINCT city FROM people WHERE city IN ('Cork' 'Delft')

-- a misspelt function, where no other says that rows are counted
-- refused: did you mean count?
SELECT cout(*) FROM people
